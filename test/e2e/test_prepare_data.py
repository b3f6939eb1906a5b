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


def mask(*arguments) -> int:
    return prepare_data.main(["masked", *map(str, arguments)])


def test_masked_samples(tmp_path, capsys):
    """BERT's shares, and nothing but the chosen tokens changed."""
    text = bytes(numpy.random.default_rng(0).integers(1, 256, 40000, dtype=numpy.uint8))
    (tmp_path / "a.txt").write_bytes(text)
    assert mask(tmp_path / "a.txt", "--seq", 100, "--share", 0.2, "--out", tmp_path / "d.safetensors") == 0
    data = safetensors.numpy.load_file(tmp_path / "d.safetensors")
    assert set(data) == {"input_ids", "attention_mask", "labels"}
    assert all(values.dtype == numpy.int64 and values.shape == (400, 100) for values in data.values())
    original = numpy.frombuffer(text, numpy.uint8).reshape(400, 100)
    seen, labels = data["input_ids"], data["labels"]
    chosen = labels != -100
    assert (data["attention_mask"] == 1).all() and (labels[chosen] == original[chosen]).all() and (seen[~chosen] == original[~chosen]).all()
    assert chosen.mean() == pytest.approx(0.2, abs=0.01) and chosen.any(axis=1).all()
    assert (seen == 0)[chosen].mean() == pytest.approx(0.8, abs=0.02)
    assert (seen == original)[chosen].mean() == pytest.approx(0.1, abs=0.02)
    assert "% to be guessed" in capsys.readouterr().out
    assert mask(tmp_path / "a.txt", "--seq", 100, "--share", 0.2, "--out", tmp_path / "again.safetensors") == 0
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "d.safetensors").read_bytes()
    assert mask(tmp_path / "a.txt", "--seq", 4, "--share", 0.001, "--out", tmp_path / "few.safetensors") == 0
    assert (safetensors.numpy.load_file(tmp_path / "few.safetensors")["labels"] != -100).any(axis=1).all()


@pytest.mark.parametrize("folder", [False, True])
def test_mask_token_of_the_tokenizer(folder, text, tmp_path):
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "one": 1, "two": 2, "[MASK]": 3}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "masks.json"))
    source = tmp_path / "masks.json"
    if folder:
        from transformers import PreTrainedTokenizerFast
        source = tmp_path / "saved"
        PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "masks.json"), mask_token="[MASK]").save_pretrained(source)
    assert mask(text / "a.txt", "--tokenizer", source, "--seq", 4, "--share", 1, "--seed", 1, "--out", tmp_path / "d.safetensors") == 0
    data = safetensors.numpy.load_file(tmp_path / "d.safetensors")
    assert data["labels"].tolist() == [[1, 2, 0, 0]] and 3 in data["input_ids"] and data["input_ids"].max() <= 3


@pytest.mark.parametrize("arguments, says", [
    (["a.txt", "--out=d.bin"], "--out d.bin: unknown kind"),
    (["a.txt", "--seq=4", "--tokenizer=words.json", "--out=d.safetensors"], "words.json has no mask token; give its id with --mask-token"),
    (["a.txt", "--seq=4", "--mask-token=256", "--out=d.safetensors"], "--mask-token 256 is not among the tokenizer's ids, 0 to 255"),
    (["a.txt", "--seq=4", "--mask-token=32", "--out=d.safetensors"], "the text holds token 32"),
])
def test_masked_refused(arguments, says, text, tokenizer, monkeypatch, capsys):
    monkeypatch.chdir(text)
    assert mask(*arguments) == 1
    assert says in capsys.readouterr().err and not list(text.glob("d.*"))


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


def test_drawn_images_repeat_and_have_no_ties(tmp_path):
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path in paths:
        assert prepare_data.main(["images", "--count=20", "--size=9", "--classes=3", f"--out={path}"]) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()
    tensors = safetensors.numpy.load_file(paths[0])
    assert tensors["pixel_values"].shape == (20, 3, 9, 9) and tensors["pixel_values"].dtype == numpy.float32
    assert set(tensors["labels"]) == {0, 1, 2}
    assert len(numpy.unique(tensors["pixel_values"])) > 0.99 * tensors["pixel_values"].size


def test_arrays_become_images(tmp_path):
    pixels = numpy.arange(2 * 4 * 5 * 3, dtype=numpy.uint8).reshape(2, 4, 5, 3)
    numpy.save(tmp_path / "x.npy", pixels)
    numpy.save(tmp_path / "y.npy", numpy.array([7, 1], numpy.int32))
    arguments = ["images", f"--images={tmp_path}/x.npy", f"--labels={tmp_path}/y.npy", f"--out={tmp_path}/d.safetensors"]
    assert prepare_data.main(arguments) == 0
    tensors = safetensors.numpy.load_file(tmp_path / "d.safetensors")
    numpy.testing.assert_allclose(tensors["pixel_values"], pixels.transpose(0, 3, 1, 2) / 127.5 - 1, atol=1e-6)
    assert list(tensors["labels"]) == [7, 1] and tensors["labels"].dtype == numpy.int64


@pytest.mark.parametrize("images, labels, says", [
    (numpy.zeros((2, 4, 5), numpy.uint8), [0, 1], "images are uint8 [n, height, width, 3] or float32"),
    (numpy.zeros((2, 3, 4, 5), numpy.float32), [0, 1, 2], "labels are integers [2], one an image"),
    (numpy.zeros((2, 3, 4, 5), numpy.float32), [0.5, 1], "labels are integers [2]"),
])
def test_unfit_arrays_are_refused(images, labels, says, tmp_path, capsys):
    numpy.save(tmp_path / "x.npy", images)
    numpy.save(tmp_path / "y.npy", labels)
    assert prepare_data.main(["images", f"--images={tmp_path}/x.npy", f"--labels={tmp_path}/y.npy",
                              f"--out={tmp_path}/d.safetensors"]) == 1
    assert says in capsys.readouterr().err and not (tmp_path / "d.safetensors").exists()


def test_images_without_labels_are_refused(tmp_path, capsys):
    assert prepare_data.main(["images", f"--images={tmp_path}/x.npy", f"--out={tmp_path}/d.safetensors"]) == 1
    assert capsys.readouterr().err == "error: give both --images X.npy and --labels Y.npy, or neither\n"


@pytest.mark.parametrize("arguments", [[], ["text"], ["text", "a", "--out=b.bin", "--bogus"], ["text", "a", "--out=b.bin", "--seq=0"]])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        prepare_data.main(arguments)
    error = capsys.readouterr().err
    assert exit.value.code == 2 and error.startswith("error: ") and error.count("\n") == 1
