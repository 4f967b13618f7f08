"""The decode step's kernels, run by Triton's interpreter on a CPU; a GPU compiles them (`test_gpu_sampling.py`).

    TRITON_INTERPRET=1 python -m pytest tests/test_kernels.py      (wants Triton, which torch's builds for CUDA bring)
"""

import os

import pytest
import torch
from transformers.utils import is_triton_available

from corl_core.training.sampling import attention, draw
from corl_core.training.sampling.cache import Heads

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and is_triton_available()
pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton, and TRITON_INTERPRET=1 before it is imported")


@pytest.fixture
def kernel():
    from corl_core.training.sampling import attention_kernel

    return attention_kernel


@pytest.mark.parametrize("processors", [1, 100], ids=["whole", "split"])
@pytest.mark.parametrize(
    ("heads", "group", "dim", "length"), [(2, 3, 16, 40), (1, 8, 24, 129), (3, 1, 32, 1200), (1, 20, 64, 600)]
)
def test_it_is_two_products_with_a_softmax(heads, group, dim, length, processors, kernel, monkeypatch):
    """Rows that see one slot, a few in the middle, and all up to the last; what is not seen may hold anything, also NaN."""
    monkeypatch.setattr(kernel, "_processors", lambda device: processors)
    draw = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(4, heads, num, dim, generator=draw) for num in (group, length, length))
    slot, start = torch.tensor([length - 3]), torch.tensor([0, length - 3, length // 2, 5])
    bounds = attention.bounds_of(start, slot, length, torch.float32)
    wanted = attention.products(query, key, value, attention.bias_of(start, slot, length, torch.float32), dim**-0.5)
    key[:, :, length - 2 :] = value[:, :, length - 2 :] = float("nan")
    got = kernel.attend(query, key, value, bounds, dim**-0.5)
    assert got.shape == query.shape and torch.allclose(got, wanted, atol=2e-5)


def test_what_a_row_gets_does_not_follow_from_the_length_of_the_cache(kernel, monkeypatch):
    """Up to 512 slots a row is whole, then it is split."""
    monkeypatch.setattr(kernel, "_processors", lambda device: 100)
    draw = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(2, 1, num, 16, generator=draw) for num in (2, 1600, 1600))
    for slot, lengths in ((400, (512, 640, 1600)), (600, (640, 1600))):
        bounds = attention.bounds_of(torch.tensor([0, 7]), torch.tensor([slot]), 1600, torch.float32)
        first, *others = (kernel.attend(query, key[:, :, :length], value[:, :, :length], bounds, 0.25) for length in lengths)
        assert all(torch.equal(first, other) for other in others)


def test_values_of_another_width_are_refused_and_left_to_products():
    heads = Heads(4, 4, 24, 16)
    with pytest.warns(UserWarning, match="attention by 'kernel' fails here and is left out: .*values 16 wide, and keys 24"):
        found = dict(attention.agreeing(*attention.trial(heads, 2, 9, "cpu", torch.float32), names=("kernel", "products")))
    assert list(found) == ["products"]


@pytest.mark.parametrize("words", [3, 2048, 5001])
def test_a_draw_and_its_measures_are_those_of_the_passes_one_by_one(words):
    """The highest word of a row is its first, its last and one between; the last row has one word that can be drawn."""
    from corl_core.training.sampling import draw_kernel

    logits = 3 * torch.randn(6, words, generator=torch.Generator().manual_seed(1))
    logits[0, 0] = logits[1, -1] = logits[2, words // 2] = 30.0
    noise = torch.empty(6, words).exponential_(generator=torch.Generator().manual_seed(2))
    wanted, measures = draw.draw(logits, torch.full((1,), 0.7), noise.clone())
    token, measured = draw_kernel.draw(logits, torch.full((1,), 0.7), noise)
    assert token.tolist() == wanted.tolist() and token[:3].tolist() == [0, words - 1, words // 2]
    assert torch.allclose(measured, measures, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.01, 0.3, 1.0])
def test_measures_are_exact_at_any_temperature_and_however_far_from_zero(temperature):
    from corl_core.training.sampling import draw_kernel

    logits = 60 + 4 * torch.randn(20, 3000, generator=torch.Generator().manual_seed(1))
    noise = torch.empty(20, 3000).exponential_(generator=torch.Generator().manual_seed(2))
    scale = torch.full((1,), 1 / temperature)
    token, measured = draw_kernel.draw(logits, scale, noise)
    logp = torch.log_softmax((logits * scale).double(), -1)
    wanted = torch.stack([logp.gather(1, token[:, None])[:, 0], -(logp.exp() * logp).sum(-1)])
    assert torch.allclose(measured[:2].double(), wanted, atol=3e-6)


def test_words_that_cannot_be_drawn_count_for_nothing():
    from corl_core.training.sampling import draw_kernel

    logits = torch.full((2, 9), -float("inf"))
    logits[0, 4], logits[1, 2], logits[1, 7] = 1.0, 0.5, 0.5
    token, measured = draw_kernel.draw(logits, torch.ones(1), torch.ones(2, 9))
    assert token.tolist() == [4, 2]
    assert measured[:2].tolist() == [[0.0, pytest.approx(-0.6931472)], [0.0, pytest.approx(0.6931472)]]
