"""prepare_data.py text --pack and export.py --packed: several documents a sample, none of which sees another."""

import sys

import numpy
import pytest
import torch
from conftest import REPOSITORY, write_config
from safetensors.numpy import load_file, save_file
from torch_reference import load_model

sys.path.insert(0, str(REPOSITORY / "models"))
import prepare_data  # noqa: E402

SEQ, STEPS, IGNORED = 24, 6, -100


def documents(lengths, seed=0):
    generator = numpy.random.default_rng(seed)
    return [generator.integers(1, 200, length, dtype=numpy.int64) for length in lengths]


# ---- what is written

def test_every_document_lies_in_one_sample_and_labels_do_not_cross(tmp_path, tools):
    texts = [b"alpha beta gamma", b"the quick", b"brown fox jumps over the lazy dog again", b"x", b"", b"one two"]
    (tmp_path / "a.txt").write_bytes(b"==".join(texts[:4]))
    (tmp_path / "b.txt").write_bytes(b"==".join(texts[4:]))
    tools("prepare_data.py", "text", tmp_path / "a.txt", tmp_path / "b.txt", "--pack", "--separator", "==", "--seq", 16, "--out",
          tmp_path / "d.safetensors")
    data = load_file(tmp_path / "d.safetensors")
    assert set(data) == {"input_ids", "position_ids", "segment_ids", "labels"} and len({value.shape for value in data.values()}) == 1
    found = []
    for ids, positions, segments, labels in zip(*(data[name] for name in ("input_ids", "position_ids", "segment_ids", "labels"))):
        assert (labels[segments == 0] == IGNORED).all()
        for segment in range(1, segments.max() + 1):
            (places,) = numpy.nonzero(segments == segment)
            assert (numpy.diff(places) == 1).all() and (positions[places] == numpy.arange(len(places))).all()
            assert labels[places[0]] == IGNORED and (labels[places[1:]] == ids[places[1:]]).all()
            found.append(bytes(ids[places].tolist()))
    pieces = [text[at:at + 16] for text in texts for at in range(0, len(text), 16)]
    assert sorted(found) == sorted(pieces)
    assert len(data["labels"]) == 5, "76 tokens in samples of 16"


def test_rows_are_filled():
    pieces = documents(numpy.random.default_rng(1).integers(1, SEQ + 1, 3000))
    rows = prepare_data.pack(pieces, SEQ)
    assert all(sum(map(len, row)) <= SEQ for row in rows) and sum(map(len, rows)) == len(pieces)
    assert sum(map(len, pieces)) / (len(rows) * SEQ) > 0.98


def test_what_is_refused(tools, tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "a.txt").write_bytes(b"text")
    pack = ["prepare_data.py", "text", "--pack", "--out"]
    assert "no token" in tools.refused(*pack, tmp_path / "d.safetensors", tmp_path / "empty.txt")
    assert "end it in .safetensors" in tools.refused(*pack, tmp_path / "d.bin", tmp_path / "a.txt")
    assert "--separator has no meaning without --pack" in tools("prepare_data.py", "text", tmp_path / "a.txt", "--separator", "x", "--out",
                                                                  tmp_path / "d.safetensors", code=2).stderr
    for model in ("bert", "vit", "my_module:build"):
        assert "--packed has no meaning" in tools("export.py", model, "--packed", "--out", tmp_path / "m", code=2).stderr


# ---- what is trained

@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The same twelve documents, packed into six samples and one a sample, as files."""
    folder = tmp_path_factory.mktemp("corpus")
    pieces = documents([24, 20, 3, 17, 7, 13, 11, 9, 5, 6, 8, 4])
    rows = prepare_data.pack(pieces, SEQ)
    assert sum(map(len, pieces)) == 127 and len(rows) == 6
    paths = []
    for name, made in (("packed", rows), ("padded", [[piece] for row in rows for piece in row])):
        paths.append(folder / f"{name}.safetensors")
        save_file(prepare_data.lay_out(made, SEQ), paths[-1])
    return paths


def losses(tools, model, data, folder, micro, accumulation, ranks=1, **deepstatic):
    name = f"{data.stem}-{ranks}-{len(deepstatic)}"
    config = write_config(folder / f"{name}.json", micro, accumulation, gradient_clipping=0.5, deepstatic=deepstatic)
    plan = folder / f"{name}.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan)
    return [line["loss"] for line in tools.train(plan, data, STEPS)[0]]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_packed_and_padded_documents_train_alike(tools, exported, corpus, tmp_path, name):
    """Each step has all twelve documents: 6 packed samples, or 12 padded ones."""
    model = exported(name, "--size=tiny", f"--seq={SEQ}", "--packed")
    packed, padded = corpus
    tokens = {"loss_normalization": "tokens"}
    expected = losses(tools, model, padded, tmp_path, 3, 4, **tokens)
    assert expected[-1] < expected[0] - 0.01
    numpy.testing.assert_allclose(losses(tools, model, packed, tmp_path, 2, 3, **tokens), expected, rtol=1e-5)
    numpy.testing.assert_allclose(losses(tools, model, packed, tmp_path, 3, 1, ranks=2, **tokens), expected, rtol=1e-5)
    # By means of micro-batches they part: a short document alone weighs as much as a full sample.
    means = [losses(tools, model, data, tmp_path, 1, len(load_file(data)["labels"])) for data in corpus]
    assert abs(means[0][0] - means[1][0]) > 1e-3


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_document_alone_has_the_loss_of_pytorch(tools, exported, corpus, tmp_path, name):
    """Of transformers' plain model, without packing: each document by itself, its losses weighed by its targets."""
    model = exported(name, "--size=tiny", f"--seq={SEQ}", "--packed")
    network = load_model(name, model)
    data = load_file(corpus[1])
    total = count = 0
    with torch.no_grad():
        for ids, segments in zip(data["input_ids"], data["segment_ids"]):
            document = torch.from_numpy(ids[segments == 1])[None]
            total += network(input_ids=document, labels=document).loss.item() * (document.shape[1] - 1)
            count += document.shape[1] - 1
    found = losses(tools, model, corpus[0], tmp_path, 6, 1, loss_normalization="tokens")
    numpy.testing.assert_allclose(found[0], total / count, rtol=1e-5)
