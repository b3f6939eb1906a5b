"""Makes a model and a configuration at fault smaller, as long as the fault stays what it is."""

SIMPLE = {"width": [4, 8, 16, 32], "tokens": [1, 3, 4, 8], "vocabulary": [5, 16, 32, 64], "frozen": [""], "positions": [False],
          "norm": ["none", "layer"], "head": ["untied", "bias", "pooled"], "transposed": [False], "open": [False], "shifted": [False], "seed": [0],
          "order": ["written", "reversed", 1]}
SIMPLE_BLOCK = {"heads": [1], "grown": [1], "bias": [False], "norm": ["none", "layer"], "act": ["Relu"], "cell": ["RNN"], "packed": [False]}
MOST_TRIES = 400


def simpler_specs(spec):
    if spec["family"] == "exported":
        return
    for i in range(len(spec["blocks"])):
        yield {**spec, "blocks": spec["blocks"][:i] + spec["blocks"][i + 1:]}
    for key, values in SIMPLE.items():
        now = spec[key]
        for value in values[:values.index(now)] if now in values else values:
            if not isinstance(value, int) or isinstance(value, bool) or value < now:
                yield {**spec, key: value}
    for i, block in enumerate(spec["blocks"]):
        for key, values in SIMPLE_BLOCK.items():
            now = block[key]
            for value in values[:values.index(now)] if now in values else values:
                yield {**spec, "blocks": [*spec["blocks"][:i], {**block, key: value}, *spec["blocks"][i + 1:]]}


def simpler_choices(choice, axes):
    for axis in reversed(list(choice)):
        yield {key: value for key, value in choice.items() if key != axis}
    for axis, now in choice.items():
        values = axes[axis]
        for value in values[:values.index(now)] if now in values else []:
            yield {**choice, axis: value}


def shrink(spec, choice, legal, axes, fails):
    """The smallest (model, choice) that greedy steps reach; `fails` says whether such a pair still has the fault."""
    tries = 0
    going = True
    while going and tries < MOST_TRIES:
        going = False
        for small in simpler_choices(choice, axes):
            small = legal(small)
            if small == choice or len(small) > len(choice):
                continue
            tries += 1
            if fails(spec, small):
                choice, going = small, True
                break
        else:
            for small in simpler_specs(spec):
                tries += 1
                if fails(small, choice):
                    spec, going = small, True
                    break
    return spec, choice
