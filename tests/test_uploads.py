"""Uploads: how many are kept, and how large a Parquet file may be once it is unpacked."""

from io import BytesIO

import pandas as pd
import pytest

from corl_core.data import uploads
from corl_core.data.questions import DataError


def lines(number: int) -> bytes:
    return f'{{"question": "{number} + 1?", "answer": "{number + 1}"}}\n'.encode()


def test_beyond_the_number_that_is_kept_a_new_file_is_refused_and_a_known_one_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_KEPT", 2)
    first, _ = uploads.keep(lines(1), tmp_path), uploads.keep(lines(2), tmp_path)
    with pytest.raises(DataError, match="2 uploads are kept already; remove some from"):
        uploads.keep(lines(3), tmp_path)
    assert uploads.keep(lines(1), tmp_path) == first and len(list(uploads.folder(tmp_path).iterdir())) == 2
    first.unlink()
    assert uploads.keep(lines(3), tmp_path).exists()


def test_a_small_parquet_file_that_unpacks_to_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    packed = BytesIO()
    # 40 texts of 100,000 letters, each its own: 4 MB that zstd packs into a few kilobytes
    pd.DataFrame({"question": [f"{n} {'x' * 100_000}" for n in range(40)]}).to_parquet(packed, compression="zstd")
    assert len(packed.getvalue()) < 100_000
    monkeypatch.setattr(uploads, "MAX_UNPACKED_BYTES", 3 * 2**20)
    monkeypatch.setattr(uploads, "read_content", lambda *_: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"'bomb' unpacks to 3 MB and 3 MB are allowed; give its path instead"):
        uploads.keep(packed.getvalue(), tmp_path, "bomb")
    assert not uploads.folder(tmp_path).exists()


def test_a_parquet_file_within_the_limit_is_kept(tmp_path, monkeypatch):
    packed = BytesIO()
    pd.DataFrame({"question": ["1 + 1?", "2 + 2?"], "answer": ["2", "4"]}).to_parquet(packed)
    monkeypatch.setattr(uploads, "MAX_UNPACKED_BYTES", 10_000)
    assert uploads.keep(packed.getvalue(), tmp_path).suffix == ".parquet"
