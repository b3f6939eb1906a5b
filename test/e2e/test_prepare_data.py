"""models/prepare_data.py as a user calls it."""

import os
import sys
from pathlib import Path

import numpy
import pytest
import safetensors.numpy
import tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))

import prepare_data  # noqa: E402


@pytest.fixture
def text(tmp_path):
    (tmp_path / "a.txt").write_bytes("one two\nthree é ".encode())  # 17 bytes
    (tmp_path / "b.txt").write_bytes(b"two one")
    return tmp_path


@pytest.fixture
def tokenizer(tmp_path):
    """one, two, three -> 1, 2, 70000; anything else -> 0."""
    model = tokenizers.models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 70000}, unk_token="?")
    words = tokenizers.Tokenizer(model)
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "words.json"))
    return tmp_path / "words.json"


def run(*arguments) -> int:
    return prepare_data.main(["text", *map(str, arguments)])


def test_bytes_become_samples(text, capsys):
    assert run(text / "a.txt", text / "b.txt", "--seq", 5, "--out", text / "d.safetensors") == 0
    stream = (text / "a.txt").read_bytes() + (text / "b.txt").read_bytes()
    data = safetensors.numpy.load_file(text / "d.safetensors")
    assert set(data) == {"input_ids", "labels"}
    for values in data.values():
        assert values.dtype == numpy.int64 and values.shape == (4, 5)
        assert bytes(values.ravel().tolist()) == stream[:20]
    assert "4 samples of 5 tokens" in (out := capsys.readouterr().out) and "4 tokens left over" in out


@pytest.mark.parametrize("name, kind", [("d.bin", "<u2"), ("d.u32.bin", "<u4")])
def test_bytes_become_a_stream(name, kind, text):
    assert run(text / "b.txt", "--out", text / name) == 0
    assert (text / name).read_bytes() == numpy.frombuffer(b"two one", numpy.uint8).astype(kind).tobytes()


def test_tokenizer_file(text, tokenizer):
    assert run(text / "a.txt", text / "b.txt", "--tokenizer", tokenizer, "--out", text / "d.u32.bin") == 0
    assert numpy.fromfile(text / "d.u32.bin", "<u4").tolist() == [1, 2, 70000, 0, 2, 1]


def test_saved_tokenizer_folder(text, tokenizer):
    from transformers import PreTrainedTokenizerFast
    PreTrainedTokenizerFast(tokenizer_file=str(tokenizer)).save_pretrained(text / "saved")
    assert run(text / "b.txt", "--tokenizer", text / "saved", "--seq", 2, "--out", text / "d.safetensors") == 0
    assert safetensors.numpy.load_file(text / "d.safetensors")["labels"].tolist() == [[2, 1]]


@pytest.mark.parametrize("arguments, says", [
    (["missing.txt", "--out=d.bin"], "cannot read missing.txt"),
    (["a.txt", "--out=d.txt"], "unknown kind"),
    (["a.txt", "--out=d.safetensors"], "17 tokens do not fill one sample of --seq 128; give more text or --seq 17"),
    (["a.txt", "--out=missing/d.bin"], "--out missing/d.bin: No such file"),
    (["a.txt", "--tokenizer=missing", "--out=d.bin"], "--tokenizer missing does not exist"),
    (["a.txt", "--tokenizer=a.txt", "--out=d.bin"], "--tokenizer a.txt: "),
    (["a.txt", "--tokenizer=words.json", "--out=d.bin"], "token id 70000 does not fit 16 bits"),
    (["latin1.txt", "--tokenizer=words.json", "--out=d.bin"], "latin1.txt is not UTF-8 at byte 1"),
    (["empty.txt", "--out=d.bin"], "the files hold no token"),
])
def test_refused(arguments, says, text, tokenizer, monkeypatch, capsys):
    (text / "latin1.txt").write_bytes(b"a\xe9")
    (text / "empty.txt").write_bytes(b"")
    monkeypatch.chdir(text)
    before = sorted(os.listdir())
    assert run(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and says in error
    assert sorted(os.listdir()) == before


def test_images_come_later(capsys):
    assert prepare_data.main(["images", "folder", "--size=32"]) == 1
    assert capsys.readouterr().err == "error: images come with a later release; this one prepares text\n"


@pytest.mark.parametrize("arguments", [[], ["text"], ["text", "a", "--out=b.bin", "--bogus"], ["text", "a", "--out=b.bin", "--seq=0"]])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        prepare_data.main(arguments)
    error = capsys.readouterr().err
    assert exit.value.code == 2 and error.startswith("error: ") and error.count("\n") == 1
