"""Architectures of transformers as a user's own modules: build(name) -> (module, example inputs), tiny, with random weights."""

import random

import torch
import transformers
from transformers.models.auto import modeling_auto

SEED = 20261121
VOCABULARY, CLASSES, SEQUENCE, BATCH = 61, 3, 10, 2
# Keys that configs share; those that a config has are set.
TINY = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, moe_intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=32, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, num_labels=CLASSES, use_cache=False, n_layer=2, n_embd=32, n_head=4, d_model=32, num_layers=2)
DROPOUTS = ("dropout", "pdrop", "drop_rate", "dropout_prob")


def names() -> list:
    """Every class with a head for text: language models, masked or not, and classifiers, in a seeded random order."""
    found = {name for mapping in (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
                                  modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES)
             for name in mapping.values() if isinstance(name, str)}
    ordered = sorted(found)
    random.Random(SEED).shuffle(ordered)
    return ordered


def build(name):
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    default = config_class()
    settings = {key: value for key, value in TINY.items() if hasattr(default, key)}
    settings |= {key: 0.0 for key, value in default.to_dict().items() if key.endswith(DROPOUTS) and isinstance(value, float)}
    module = model_class(config_class(**settings))
    module.config._attn_implementation = "eager"
    base, classifies = model_class, "SequenceClassification" in name

    def forward(self, input_ids, labels):
        return base.forward(self, input_ids=input_ids, labels=labels).loss
    module.__class__ = type(base.__name__, (base,), {"forward": forward})
    ids = torch.randint(3, VOCABULARY, (BATCH, SEQUENCE))
    return module, {"input_ids": ids, "labels": torch.randint(CLASSES, (BATCH,)) if classifies else ids.clone()}
