"""Published sizes: transformers' config keys, and the arguments of our ResNet."""

import difflib

from . import Refusal

DEFAULT_SIZES = {"resnet50": "50"}  # of the others it is "small"

# tiny is ours: four layers, so that it can be cut into four pipeline stages, and one token per byte.
# GPT-2: Radford et al. 2019. Llama: 160m is llama-160m, 1b TinyLlama 1.1B, 7b to 70b Llama 2, 8b Llama 3. BERT: Devlin et al.
# 2019, base and large. MoE: 8x7b and 8x22b are Mixtral's, small is ours with the shape of llama-160m.
GPT2_SIZES = {
    "tiny": dict(n_layer=4, n_embd=64, n_head=4, vocab_size=256, n_positions=128),
    "small": dict(n_layer=12, n_embd=768, n_head=12),
    "medium": dict(n_layer=24, n_embd=1024, n_head=16),
    "large": dict(n_layer=36, n_embd=1280, n_head=20),
    "xl": dict(n_layer=48, n_embd=1600, n_head=25),
}


def _llama(hidden, intermediate, layers, heads, kv_heads, positions, **other):
    return dict(hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
                num_key_value_heads=kv_heads, max_position_embeddings=positions, **other)


LLAMA_SIZES = {
    "tiny": _llama(64, 176, 4, 4, 2, 128, vocab_size=256),
    "160m": _llama(768, 3072, 12, 12, 12, 2048),
    "1b": _llama(2048, 5632, 22, 32, 4, 2048, rms_norm_eps=1e-5),
    "7b": _llama(4096, 11008, 32, 32, 32, 4096, rms_norm_eps=1e-5),
    "8b": _llama(4096, 14336, 32, 32, 8, 8192, rms_norm_eps=1e-5, vocab_size=128256,
                 rope_parameters={"rope_type": "default", "rope_theta": 500000.0}),
    "13b": _llama(5120, 13824, 40, 40, 40, 4096, rms_norm_eps=1e-5),
    "70b": _llama(8192, 28672, 80, 64, 8, 4096, rms_norm_eps=1e-5),
}
LLAMA_SIZES["small"] = LLAMA_SIZES["160m"]
LLAMA_SIZES["medium"] = LLAMA_SIZES["1b"]
LLAMA_SIZES["large"] = LLAMA_SIZES["7b"]

BERT_SIZES = {
    "tiny": dict(hidden_size=64, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, vocab_size=256,
                 max_position_embeddings=128),
    "base": dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12),
    "large": dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16),
}
BERT_SIZES["small"] = BERT_SIZES["base"]


def _mixtral(*llama, experts=8, **other):
    return _llama(*llama, num_local_experts=experts, num_experts_per_tok=2, **other)


MOE_SIZES = {
    "tiny": _mixtral(64, 96, 4, 4, 2, 128, experts=4, vocab_size=256),
    "small": _mixtral(768, 2048, 12, 12, 12, 2048),
    "8x7b": _mixtral(4096, 14336, 32, 32, 8, 4096),
    "8x22b": _mixtral(6144, 16384, 56, 48, 8, 4096),
}
MOE_SIZES["large"] = MOE_SIZES["8x7b"]

# Dosovitskiy et al. 2020, Touvron et al. 2021: patches of 16 pixels, 1000 classes.
VIT_SIZES = {
    "tiny": dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256, image_size=32,
                 patch_size=8, num_labels=10),
    "small": dict(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536, num_labels=1000),
    "base": dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, num_labels=1000),
    "large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=1000),
}
RESNET_SIZES = {
    "tiny": dict(blocks=(1, 1, 1, 1), width=8, num_labels=10, image_size=64),
    "50": dict(blocks=(3, 4, 6, 3)),
}

SIZES = {"gpt2": GPT2_SIZES, "llama": LLAMA_SIZES, "bert": BERT_SIZES, "moe": MOE_SIZES, "vit": VIT_SIZES,
         "resnet50": RESNET_SIZES}
IMAGE_MODELS = ("vit", "resnet50")
# What follows goes by transformers' model_type.
MODEL_TYPES = {"gpt2": "gpt2", "llama": "llama", "bert": "bert", "moe": "mixtral", "vit": "vit"}
DROPOUT_KEYS = {"gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"), "llama": ("attention_dropout",),
                "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"), "mixtral": ("attention_dropout",),
                "vit": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
ATTENTION_DROPOUT_KEY = {"gpt2": "attn_pdrop", "llama": "attention_dropout", "bert": "attention_probs_dropout_prob",
                         "mixtral": "attention_dropout", "vit": "attention_probs_dropout_prob"}
POSITIONS_KEY = {"gpt2": "n_positions", "llama": "max_position_embeddings", "bert": "max_position_embeddings",
                 "mixtral": "max_position_embeddings"}


def size_settings(name: str, size: str) -> dict:
    """Config keys of one published size; refuses an unknown one."""
    if size not in SIZES[name]:
        raise Refusal(f"{name} has no size '{size}'; sizes: {', '.join(SIZES[name])}")
    return dict(SIZES[name][size])


def check_keys(config_class, settings: dict) -> None:
    """Refuses a key of the user's that the config class does not have; transformers would keep it and ignore it."""
    from transformers import PreTrainedConfig
    default = config_class()
    known = set(default.to_dict()) - set(PreTrainedConfig().to_dict())
    for key in settings:
        if key not in known and not hasattr(default, key):
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; keys: {', '.join(sorted(known))}"
            raise Refusal(f"--set {key}: {config_class.model_type}'s config has no such key{hint}")


def fit_positions(config, sequence: int, may_grow: bool) -> None:
    """Makes room for `sequence` positions (tokens), or refuses when the position table is given."""
    key = POSITIONS_KEY[config.model_type]
    if sequence <= getattr(config, key):
        return
    if not may_grow:
        raise Refusal(f"--seq {sequence} exceeds the model's {key} of {getattr(config, key)}; give --seq {getattr(config, key)} or less")
    setattr(config, key, sequence)
