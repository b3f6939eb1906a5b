"""`models/export.py FOLDER` for classes of transformers that it knows nothing about: the graph has the class's own loss."""

import sys

import pytest
import torch
import transformers
from conftest import REPOSITORY, write_config
from safetensors.torch import save_file

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

TINY = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32)
MODELS = {"Qwen2ForCausalLM": dict(**TINY, num_key_value_heads=2, attention_dropout=0.1),
          "DistilBertForSequenceClassification": dict(vocab_size=64, dim=32, hidden_dim=48, n_layers=1, n_heads=4, num_labels=3, max_position_embeddings=32)}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_folder_of_any_class_exports_and_trains(tools, tmp_path, name):
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    module = model_class(model_class.config_class(**MODELS[name]))
    module.save_pretrained(tmp_path / "saved")
    tools("export.py", tmp_path / "saved", "--seq", 16, "--dropout", 0, "--out", tmp_path / "onnx")
    tools("ds-opt", "compile", tmp_path / "onnx", "--config", write_config(tmp_path / "c.json", 2), "-o", tmp_path / "m.dsplan")
    ids = torch.randint(0, 64, (4, 16))
    labels = ids.clone() if "Causal" in name else torch.randint(0, 3, (4,))
    save_file({"input_ids": ids, "labels": labels}, tmp_path / "data.safetensors")
    lines, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", 2)
    with torch.no_grad():
        expected = module.eval()(input_ids=ids[:2], labels=labels[:2]).loss.item()
    assert lines[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_attention_that_the_exporter_cannot_write_names_the_way_out(tmp_path, capsys):
    config = transformers.T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0, dropout_rate=0.0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "saved")
    assert exporter.main([str(tmp_path / "saved"), "--seq=16", f"--out={tmp_path / 'onnx'}"]) == 1
    assert "so try --attention eager" in capsys.readouterr().err
    assert exporter.main([str(tmp_path / "saved"), "--seq=16", f"--out={tmp_path / 'onnx'}", "--attention=eager", "--skip-gradient-check"]) == 0


def test_a_class_without_a_loss_is_refused_with_the_way_out(tools, tmp_path):
    transformers.Qwen2Model(transformers.Qwen2Config(**TINY, num_key_value_heads=2)).save_pretrained(tmp_path / "saved")
    sentence = tools.refused("export.py", tmp_path / "saved", "--out", tmp_path / "onnx")
    assert "Qwen2Model computes no loss from labels" in sentence and "docs/attach-loss.md" in sentence


def test_a_folder_with_the_name_of_a_known_model_is_not_taken_for_it(tools, tmp_path):
    """`export.py llama` beside a saved folder `llama` would train random weights."""
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY)).save_pretrained(tmp_path / "llama")
    done = tools("export.py", "llama", "--out", "onnx", code=1, cwd=tmp_path)
    assert "error: 'llama' is the name of a model with random weights, and here is a folder llama with a saved one; write ./llama" in done.stderr
    assert "try: python models/export.py ./llama --out onnx\n" in done.stderr
    saved = tools("export.py", "./llama", "--seq", 16, "--out", "onnx", cwd=tmp_path).stdout
    drawn = tools("export.py", "llama", "--size", "tiny", "--seq", 16, "--out", "drawn", cwd=tmp_path).stdout
    assert saved.startswith("llama: ") and drawn.startswith("llama tiny: ")
