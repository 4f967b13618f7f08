"""LoRA agents: they train their adapters alone, go on from a checkpoint, and leave a plain model behind."""

import threading

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core.config import ConfigError, load_config
from corl_core.config_models import LoraSettings
from corl_core.runs import checkpoints, launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import read
from corl_core.runs.supervisor import Supervisor
from corl_core.training import adapters, models
from corl_core.training.teacher import Teacher

LORA = "[{name: a, model: %s, lora: {r: 4, lora_alpha: 8}}, {name: b, model: %s, lora: {target_modules: [q_proj, v_proj]}}]"
IDS = torch.tensor([[8, 11, 14, 7, 12, 15]])


@pytest.fixture
def base(base_models):
    return AutoModelForCausalLM.from_pretrained(base_models["qwen2"], dtype=torch.float32)


def stirred(model):
    """The same model with adapters that do something, as after an update (B begins at 0)."""
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(1))
    return model


def test_adapters_begin_as_the_base_model_and_follow_their_own_seed_alone(base_models, base):
    before = base(IDS).logits
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = adapters.add(base, LoraSettings(r=4), seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first(IDS).logits, before)
    again, other = (
        adapters.add(AutoModelForCausalLM.from_pretrained(base_models["qwen2"]), LoraSettings(r=4), seed) for seed in (1, 2)
    )
    a, b, c = (dict(model.named_parameters()) for model in (first, again, other))
    trained = [name for name, weight in a.items() if weight.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    assert all(torch.equal(a[name], b[name]) for name in trained)
    assert not all(torch.equal(a[name], c[name]) for name in trained)


def test_what_is_saved_is_a_plain_model_with_the_same_answers(base, tmp_path):
    model = stirred(adapters.add(base, LoraSettings(r=4), seed=1))
    kept = {name: weight.clone() for name, weight in model.named_parameters()}
    adapters.save(model, tmp_path / "model")
    assert all(torch.equal(weight, kept[name]) for name, weight in model.named_parameters()), "saving changed the agent"
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert not hasattr(loaded, "peft_config") and loaded.config.tie_word_embeddings
    with torch.no_grad():
        torch.testing.assert_close(loaded(IDS).logits, model(IDS).logits, atol=1e-4, rtol=1e-4)
        with model.disable_adapter():
            assert (model(IDS).logits - loaded(IDS).logits).abs().max() > 1e-2, "the adapters did nothing"
    assert loaded.generation_config.eos_token_id == base.generation_config.eos_token_id
    assert (tmp_path / "model" / "adapter" / "adapter_model.safetensors").is_file()


def test_the_saved_adapters_alone_give_the_model_back(base, base_models, tmp_path):
    from peft import PeftModel

    model = stirred(adapters.add(base, LoraSettings(r=4), seed=1))
    adapters.save(model, tmp_path)
    fresh = AutoModelForCausalLM.from_pretrained(base_models["qwen2"])
    assert torch.equal(PeftModel.from_pretrained(fresh, tmp_path / "adapter")(IDS).logits, model(IDS).logits)


def test_bfloat16_weights_are_saved_as_bfloat16(base_models, tmp_path):
    base = AutoModelForCausalLM.from_pretrained(base_models["llama"], dtype=torch.bfloat16)
    adapters.save(stirred(adapters.add(base, LoraSettings(r=4), seed=1)), tmp_path)
    assert {weight.dtype for weight in load_file(tmp_path / "model.safetensors").values()} == {torch.bfloat16}


def test_a_teacher_of_a_lora_agent_shares_its_frozen_weights_and_follows_its_adapters(base, base_models, small_run, tmp_path):
    policy = adapters.add(base, LoraSettings(r=4), seed=1)
    teacher = Teacher(policy, AutoTokenizer.from_pretrained(base_models["qwen2"]), small_run("co_rewarding_2"), "a")
    mine, its = dict(teacher.model.named_parameters()), dict(policy.named_parameters())
    own = [name for name in mine if mine[name] is not its[name]]
    assert own and all("lora_" in name for name in own)
    name = next(name for name in own if "lora_B" in name)
    with torch.no_grad():
        its[name].add_(1.0)
    teacher.follow(0.25)
    torch.testing.assert_close(mine[name], torch.full_like(mine[name], 0.25))  # .75 * 0 + .25 * 1
    teacher.save(tmp_path)
    teacher.follow(1.0)
    teacher.load(tmp_path)
    torch.testing.assert_close(mine[name], torch.full_like(mine[name], 0.25))


@pytest.mark.parametrize(
    ("lora", "message"),
    [
        ("{r: 0}", "greater than or equal to 1"),
        ("{target_modules: []}", "name at least one layer"),
        ("{target_modules: [lm_head]}", "adapters on the head 'lm_head' would never be trained"),
        ("{target_modules: [q_proj, model.embed_tokens]}", "adapters on the embedding 'embed_tokens' change the head too"),
        ("{target_modules: [wte]}", "adapters on the embedding 'wte'"),
        ("{rank: 4}", "unknown key 'rank'"),
    ],
)
def test_lora_settings_that_cannot_train_are_refused(lora, message):
    with pytest.raises(ConfigError, match=message):
        load_config("demo", [f"agents.0.lora={lora}"])


def test_4_bit_weights_are_refused_without_a_gpu_in_words(base_models):
    with pytest.raises(ConfigError, match=r"'llama' has lora.load_in_4bit=True with device='cpu'.*remove load_in_4bit"):
        load_config("demo", ["device=cpu", "agents.0.lora={load_in_4bit: true}"])
    if torch.cuda.is_available():
        return
    agents = f"[{{name: a, model: {base_models['llama']}, lora: {{load_in_4bit: true}}}}]"
    config = load_config("demo-ttrl", ["ring=null", f"agents={agents}"])
    with pytest.raises(models.ModelError, match=r"agents: 'a' has lora\.load_in_4bit=True, which needs a GPU"):
        models.load(config, config.agents[0], "cpu")


def test_a_layer_that_the_model_lacks_is_named(base_models):
    agents = f"[{{name: a, model: {base_models['llama']}, lora: {{target_modules: [no_such_layer]}}}}]"
    config = load_config("demo-ttrl", ["ring=null", f"agents={agents}"])
    with pytest.raises(models.ModelError, match=r"agents: 'a' has lora\.target_modules=.*no_such_layer"):
        models.trainable(config, config.agents[0], "cpu")


def finished(run: Run) -> Run:
    status = Supervisor(run).run()
    assert (status.state, status.reason) == ("finished", ""), run.log_tail("a") + run.log_tail("b")
    return run


@pytest.mark.training
@pytest.mark.parametrize("fields", [{}, {"grpo__gradient_checkpointing": True}, {"grpo__beta": 0.1}])
def test_a_ring_of_lora_agents_learns_in_its_adapters_alone(fields, small_run, base_models, tmp_path):
    agents = LORA % (base_models["llama"], base_models["qwen2"])
    run = finished(launch.create(small_run(agents=agents, grpo__learning_rate=1e-2, **fields), tmp_path))
    for name, family in (("a", "llama"), ("b", "qwen2")):
        folder = run.agent_path(name) / "model"
        before, after = load_file(base_models[family] / "model.safetensors"), load_file(folder / "model.safetensors")
        moved = {key for key in before if not torch.equal(before[key], after[key])}
        assert moved and all("_proj.weight" in key for key in moved)
        if name == "b":
            assert all("q_proj" in key or "v_proj" in key for key in moved)
        assert AutoModelForCausalLM.from_pretrained(folder)
        grads = [line["metrics"]["grad_norm"] for line in read(run.journal_paths()[name]) if line["event"] == "step"]
        assert max(grads) > 0


@pytest.mark.training
@pytest.mark.parametrize(("method", "beta"), [("corl", 0.1), ("co_rewarding_2", 0.0)])
def test_a_lora_run_that_was_stopped_goes_on_bit_for_bit(method, beta, small_run, base_models, tmp_path, wait_for):
    agents = LORA % (base_models["llama"], base_models["qwen2"])
    fields = {"grpo__max_steps": 32, "grpo__beta": beta, "grpo__learning_rate": 1e-2, "eval__num_questions": 0}
    config = small_run(method, agents=agents, **fields)
    whole = finished(launch.create(config, tmp_path / "whole"))
    run = launch.create(config, tmp_path / "stopped")
    thread = threading.Thread(target=Supervisor(run).run)
    thread.start()
    journal = run.journal_paths()["a"]
    wait_for(lambda: any(line["event"] == "step" and line["step"] >= 3 for line in read(journal)), "step 3", every_s=0.01)
    launch.stop(run)
    thread.join(60)
    assert 0 < min(checkpoints.resume_steps(run).values()) < 32
    launch.reopen(run)
    finished(run)
    assert all(("kl" in line["metrics"]) is (beta > 0) for line in read(journal) if line["event"] == "step")
    for name in "ab":
        ours, theirs = (
            load_file(one.agent_path(name) / "model" / "adapter" / "adapter_model.safetensors") for one in (whole, run)
        )
        assert all(torch.equal(ours[key], theirs[key]) for key in ours), name
