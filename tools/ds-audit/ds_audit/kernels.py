"""What each kernel means, over any number type: one table for a plan's kernels and the ops of its reference program.

A row's function takes the algebra (field.py, real.py), the inputs as Tensors, the attributes under the kernel's names, the results as
(dtype, shape), and where in a run the call stands; it returns the results' data. A train op has the row of the kernel of its name.
"""

import collections
import dataclasses

import numpy

from .elementwise import BINARY_NAMES, UNARY_NAMES, Tensor, elementwise, run_program
from .plans import DTYPES, Refusal


Place = collections.namedtuple("Place", "step microbatch")  # what random numbers depend on; a micro-batch of all ranks


@dataclasses.dataclass(frozen=True)
class Row:
    function: object
    attributes: tuple = ()   # names of the kernel's; None: it takes any
    defaults: dict = dataclasses.field(default_factory=dict)  # where a train op or a kernel may leave an attribute out
    over: tuple = ()         # inputs whose bytes results may have
    results_over: tuple = (0,)  # which results
    ignored: tuple = ()      # attributes that choose rounding, speed, or what results' shapes say already


def matmul(algebra, inputs, attributes, results, place):
    epilogue = attributes["epilogue"]
    if epilogue not in ("", "gelu_tanh", "gelu_tanh_grad") or len(results) != 1 + (epilogue == "gelu_tanh"):
        raise Refusal("ds-audit knows no such epilogue of a product")
    *inputs, x = inputs if epilogue == "gelu_tanh_grad" else (*inputs, None)
    if len(inputs) != 2 + bool(attributes["bias"]):
        raise Refusal("attributes bias and epilogue do not say how many operands there are")
    a, b = (numpy.swapaxes(tensor.data, -1, -2) if attributes[flag] else tensor.data for tensor, flag in zip(inputs, ("trans_a", "trans_b")))
    c = algebra.matmul(a, b)
    product = Tensor(algebra.rounded(algebra.add(c, inputs[2].data) if len(inputs) == 3 else c, results[0][0]), results[0][0])
    if epilogue:
        return with_gelu(algebra, product, x)
    return [product.data]


def with_gelu(algebra, product, x):
    """[GELU of a product, the product], or with its input `x` [the product times GELU's slope there]; 16 bits are computed with in float32."""
    narrow, wide = product.dtype, next(dtype for dtype in DTYPES.values() if dtype.name == "f32") if product.dtype.width == 2 else product.dtype

    def run(name, *operands):
        return Tensor(elementwise(algebra, name, wide, operands), wide)
    result = run("mul", run("cast", product), run("gelu_tanh_slope", run("cast", x))) if x else run("gelu_tanh", run("cast", product))
    return [elementwise(algebra, "cast", narrow, [result])] + ([] if x else [product.data])


def linear_weight_grad(algebra, inputs, attributes, results, place):
    dy, x = (tensor.data for tensor in inputs)
    weight = algebra.matmul(dy.T, x) if attributes["transposed"] else algebra.matmul(x.T, dy)
    return [algebra.rounded(sums, results[i][0]) for i, sums in enumerate((weight, algebra.sum(dy, 0)))]


def quantize_fp8(algebra, inputs, attributes, results, place):
    """Nonlinear as a whole, since the scale is; what is transposed are the same codes. Blocks are of the codes, so what is transposed has others."""
    x, block = inputs[0].data, attributes["block"]
    codes = x.T if block and attributes["transposed"] else x
    codes, scale = algebra.opaque("quantize_fp8", ((("format", attributes["format"]), ("block", block)), codes.shape), [codes],
                                  [codes.shape, scale_shape(block, *codes.shape)])
    return [codes.T if attributes["transposed"] and not block else codes, scale]


def scale_shape(block, lines, depth):
    """Of the scales of codes [lines, depth], as kernels/Float8.h says."""
    along = -(-depth // 128)
    return {"": (), "1x128": (along, lines), "128x128": (-(-lines // 128), -(-along // 4) * 4)}[block]


def scales_of(scale, block, lines, at):
    """Those of the `at`-th 128 columns, one for each line."""
    return scale[at] if block == "1x128" else numpy.repeat(scale[:, at], 128)[:lines]


def fp8_matmul(algebra, inputs, attributes, results, place):
    a, a_scale, b, b_scale, *bias = (tensor.data for tensor in inputs)
    blocks = attributes["a_block"], attributes["b_block"]
    if (a_scale.shape, b_scale.shape) != tuple(scale_shape(block, *codes.shape) for block, codes in zip(blocks, (a, b))):
        raise Refusal("scales of a product in 8 bits are not those of its blocks")
    if not any(blocks):
        product = algebra.mul(algebra.matmul(a, b.T), algebra.mul(a_scale, b_scale))
    else:
        product = numpy.zeros((len(a), len(b)), a.dtype)
        for at in range(-(-a.shape[1] // 128)):
            part = slice(128 * at, 128 * (at + 1))
            rows, columns = (scales_of(scale, block, len(codes), at) for scale, block, codes in zip((a_scale, b_scale), blocks, (a, b)))
            product = algebra.add(product, algebra.mul(algebra.matmul(a[:, part], b[:, part].T), algebra.mul(rows[:, None], columns[None, :])))
    return [algebra.rounded(algebra.add(product, bias[0]) if bias else product, results[0][0])]


def opaque(name, flag_at=None, flag="mask", columns_at=None):
    """A nonlinear op as a whole. `flag` says whether there is an optional input, without which there are `flag_at`; of an op on rows
    only the number of columns matters, which input `columns_at` has."""
    def run(algebra, inputs, attributes, results, place):
        if flag_at is not None and bool(attributes[flag]) != (len(inputs) == flag_at + 1):
            raise Refusal(f"attribute {flag} does not say whether there is a {flag}")
        data, shapes = [tensor.data for tensor in inputs], [shape for _, shape in results]
        form = tuple(array.shape for array in data), tuple(shapes)
        if columns_at is not None:
            form, data = data[columns_at].size, [array.ravel() for array in data]
        return algebra.opaque(name, (tuple(sorted(attributes.items())), form), data, shapes)
    return run


def cross_entropy_with_grad(algebra, inputs, attributes, results, place):
    logits, labels, dloss = inputs
    loss, lse = opaque("cross_entropy")(algebra, [logits, labels], attributes, results[:2], place)
    gradient = opaque("cross_entropy_grad")(algebra, [logits, labels, Tensor(lse, results[1][0]), dloss], attributes, results[2:], place)
    return [loss, lse, *gradient]


def slice_(algebra, inputs, attributes, results, place):
    x, shape = inputs[0].data, results[0][1]
    parts = tuple(slice(start, start + (size - 1) * step + 1 if size else start, step)
                  for start, size, step in zip(attributes["starts"], shape, attributes["steps"], strict=True))
    if any(start < 0 or step < 1 for start, step in zip(attributes["starts"], attributes["steps"])):
        raise Refusal("a slice starts before 0 or steps backwards")
    return [x[parts]]


def pad(algebra, inputs, attributes, results, place):
    x, (dtype, shape) = inputs[0], results[0]
    value = numpy.asarray(attributes["value"])
    y = numpy.full(shape, algebra.constants(value, dtype) if dtype.is_float else value.astype(numpy.int64), x.data.dtype)
    parts = tuple(slice(low, low + (size - 1) * (gap + 1) + 1 if size else low, gap + 1)
                  for low, size, gap in zip(attributes["low"], x.data.shape, attributes["interior"], strict=True))
    y[parts] = x.data
    return [y]


def ordered(algebra, tensor):
    return algebra.ordered(tensor.data) if tensor.dtype.is_float else tensor.data


def reduction(kind):
    def run(algebra, inputs, attributes, results, place):
        x, axes, dtype = inputs[0], attributes["axes"], results[0][0]
        if kind == "max":
            y = ordered(algebra, x).max(axis=axes)
            return [algebra.from_ordered(y) if x.dtype.is_float else y]
        if not x.dtype.is_float:
            return [x.data.sum(axis=axes)]
        y = algebra.sum(x.data, axes)
        if kind == "mean":
            y = algebra.div(y, algebra.constants(x.data.size // max(y.size, 1), DTYPES[8]))
        return [algebra.rounded(y, dtype)]
    return run


def checked(indices, size, what):
    """Indices with negative ones counted from the end."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise Refusal(f"{what}: index {indices.min() if indices.min() < -size else indices.max()} is outside of {size}")
    return numpy.where(indices < 0, indices + size, indices)


def gather(algebra, inputs, attributes, results, place):
    data, axis = inputs[0].data, attributes["axis"]
    return [numpy.take(data, checked(inputs[1].data, data.shape[axis], "a gather"), axis)]


def gather_grad(algebra, inputs, attributes, results, place):
    (dtype, shape), axis, dy = results[0], attributes["axis"], inputs[0].data
    indices = checked(inputs[1].data, shape[axis], "a gather's gradient")
    rows = dy.reshape(shape[:axis] + (indices.size,) + shape[axis + 1:])
    y = numpy.zeros((shape[axis],) + shape[:axis] + shape[axis + 1:], dy.dtype)
    numpy.add.at(y, indices.ravel(), numpy.moveaxis(rows, axis, 0))
    return [algebra.rounded(algebra.reduced(numpy.moveaxis(y, 0, axis)), dtype)]


def element_places(data_shape, indices, axis):
    places = list(numpy.indices(indices.shape, sparse=True))
    places[axis] = checked(indices, data_shape[axis], "an index of elements")
    return tuple(places)


def gather_elements(algebra, inputs, attributes, results, place):
    return [inputs[0].data[element_places(inputs[0].data.shape, inputs[1].data, attributes["axis"])]]


def scatter_elements(algebra, inputs, attributes, results, place):
    data, places = inputs[0].data.copy(), element_places(inputs[0].data.shape, inputs[1].data, attributes["axis"])
    if attributes["reduction"] == "replace":
        data[places] = inputs[2].data
    elif attributes["reduction"] == "add":
        numpy.add.at(data, places, inputs[2].data)
        data = algebra.rounded(algebra.reduced(data), results[0][0]) if inputs[0].dtype.is_float else data
    else:
        return opaque("scatter_elements")(algebra, inputs, attributes, results, place)
    return [data]


def norm(name, inputs_without):
    """Of x or, with one input more, of the sum of both, which is a result as well, and of 16 bits rounded before."""
    normalized = opaque(name, columns_at=1)

    def run(algebra, inputs, attributes, results, place):
        if len(inputs) not in (inputs_without, inputs_without + 1):
            raise Refusal(f"{name} has {len(inputs)} inputs")
        if len(inputs) == inputs_without:
            return normalized(algebra, inputs, attributes, results, place)
        x, *others, residual = inputs
        total = algebra.add(x.data, residual.data.reshape(x.data.shape))
        rounded = Tensor(algebra.rounded(total, x.dtype), x.dtype)
        sums = [total, rounded.data][:len(results) - inputs_without]
        return [*normalized(algebra, [rounded, *others], attributes, results[:inputs_without], place), *sums]
    return run


def norm_grad(name, inputs_without):
    """The gradients, and what is added to that of x, which is rounded before."""
    gradients = opaque(name, columns_at=2)

    def run(algebra, inputs, attributes, results, place):
        if len(inputs) not in (inputs_without, inputs_without + 1):
            raise Refusal(f"{name} has {len(inputs)} inputs")
        dx, *sums = gradients(algebra, inputs[:inputs_without], attributes, results, place)
        if len(inputs) > inputs_without:
            dx = algebra.rounded(algebra.add(dx, inputs[inputs_without].data.reshape(dx.shape)), results[0][0])
        return [dx, *sums]
    return run


def arg_max(algebra, inputs, attributes, results, place):
    x, axis = ordered(algebra, inputs[0]), attributes["axis"]
    return [x.shape[axis] - 1 - numpy.flip(x, axis).argmax(axis) if attributes["last"] else x.argmax(axis)]


def top_k(algebra, inputs, attributes, results, place):
    x, k = ordered(algebra, inputs[0]), results[0][1][-1]
    indices = numpy.argsort(x if attributes["smallest"] else -x, axis=-1, kind="stable")[..., :k]
    return [numpy.take_along_axis(inputs[0].data, indices, -1), indices]


def cumsum(algebra, inputs, attributes, results, place):
    x, axis = inputs[0], attributes["axis"]
    data = numpy.flip(x.data, axis) if attributes["reverse"] else x.data
    sums = algebra.cumsum(data, axis) if x.dtype.is_float else numpy.cumsum(data, axis)
    if attributes["exclusive"]:
        sums = algebra.sub(sums, data) if x.dtype.is_float else sums - data
    sums = numpy.flip(sums, axis) if attributes["reverse"] else sums
    return [algebra.rounded(sums, results[0][0]) if x.dtype.is_float else sums]


def dropout(algebra, inputs, attributes, results, place):
    """Linear in x; the mask is a random element a place of (step, global micro-batch, op, element)."""
    mask = algebra.mask(("dropout", attributes["ratio"], attributes["op_id"], place.step, place.microbatch), inputs[0].data.shape)
    return [algebra.rounded(algebra.mul(inputs[0].data, mask), results[0][0])]


def uniform(algebra, inputs, attributes, results, place):
    return [algebra.mask(("uniform", None, attributes["op_id"], place.step, place.microbatch), results[0][1])]


def optimizer(name, states, normed=False):
    """Element by element: p, g, states, lr, step, clip and a momentum if it is cycled; g is multiplied by clip first. Or, if `normed`,
    by norms of all elements besides."""
    def run(algebra, inputs, attributes, results, place):
        data = [tensor.data for tensor in inputs]
        cycled = attributes.get("cycled", 0)
        data[1] = algebra.mul(data[1], data.pop(-1 - cycled))
        count = len(data) - 4 - cycled
        if count > states or len(results) != 1 + count:
            raise Refusal(f"{name} has {count} operands of state, not {states}")
        key = tuple(sorted(attributes.items()))
        return algebra.update(name, key, data + (algebra.opaque(name, key, data, [()]) if normed else []), 1 + count)
    return run


def block_sum_squares(algebra, inputs, attributes, results, place):
    flat, block = inputs[0].data.ravel(), attributes["block"]
    squares = numpy.zeros(-(-flat.size // block) * block, flat.dtype)
    squares[:flat.size] = algebra.mul(flat, flat)
    return [algebra.sum(squares.reshape(-1, block), 1)]


def global_norm(algebra, inputs, attributes, results, place):
    flat = numpy.concatenate([tensor.data.ravel() for tensor in inputs]) if inputs else numpy.zeros(0, numpy.int64)
    return [algebra.unary("sqrt", numpy.asarray(algebra.sum(flat, 0)))]


def scalar(name):
    return lambda algebra, inputs, attributes, results, place: [algebra.hashed(name, tuple(sorted(attributes.items())), [inputs[0].data])]


def clip_factor(algebra, inputs, attributes, results, place):
    """A hash is never 1, but a plan may do without its tail where the factor is; so it is 1 in some steps."""
    if place.step in algebra.unclipped:
        return [numpy.ones_like(inputs[0].data)]
    return scalar("clip_factor")(algebra, inputs, attributes, results, place)


WINDOW, FROM_SHAPES = ("strides", "dilations", "low"), ("high", "shape", "wide")
WITHOUT_MASK = {"attention": 3, "attention_grad": 6, "packed_attention": 1, "packed_attention_grad": 4}  # inputs

ROWS = {
    "elementwise": Row(run_program, ("program", "constants", "results")),
    "matmul": Row(matmul, ("trans_a", "trans_b", "bias", "epilogue"), dict(trans_a=0, trans_b=0, epilogue=""), ignored=("pieces", "tf32", "wide")),
    "linear_weight_grad": Row(linear_weight_grad, ("transposed",), defaults=dict(transposed=0), ignored=("pieces", "tf32", "wide")),
    "quantize_fp8": Row(quantize_fp8, ("format", "transposed", "block"), defaults=dict(transposed=0, block="")),
    "fp8_matmul": Row(fp8_matmul, ("a_format", "b_format", "bias", "a_block", "b_block"), defaults=dict(a_block="", b_block=""), ignored=("pieces", "wide")),
    **{name: Row(opaque(name, inputs), ("scale", "causal", "mask", "bshd"), defaults=dict(causal=0, bshd=0), ignored=("heads",))
       for name, inputs in WITHOUT_MASK.items()},
    "transpose": Row(lambda algebra, inputs, attributes, *_: [inputs[0].data.transpose(attributes["perm"])], ("perm",)),
    "slice": Row(slice_, ("starts", "steps"), ignored=("sizes",)), "pad": Row(pad, ("low", "interior", "value"), ignored=("high",)),
    "concat": Row(lambda algebra, inputs, attributes, *_: [numpy.concatenate([x.data for x in inputs], attributes["axis"])], ("axis",)),
    **{f"reduce_{kind}": Row(reduction(kind), ("axes",), ignored=("wide",)) for kind in ("sum", "mean", "max")},
    **{name: Row(opaque(name), ("axis",), over=(0,)) for name in ("softmax", "log_softmax")},
    **{name: Row(opaque(name), ("axis",), over=(0, 1)) for name in ("softmax_grad", "log_softmax_grad")},
    **{name: Row(norm(name, inputs), ("epsilon",), over=(0, inputs), results_over=(0, inputs, inputs + 1), ignored=("residual", "rounded"))
       for name, inputs in (("layer_norm", 3), ("rms_norm", 2))},
    **{name: Row(norm_grad(name, inputs), over=(0, 1, inputs), ignored=("residual",)) for name, inputs in (("layer_norm_grad", 5), ("rms_norm_grad", 4))},
    "batch_norm": Row(opaque("batch_norm"), ("epsilon",), over=(0,)), "batch_norm_grad": Row(opaque("batch_norm_grad"), over=(0, 1)),
    "conv": Row(opaque("conv", 2, "bias"), (*WINDOW, "groups", "bias"), ignored=FROM_SHAPES),
    **{name: Row(opaque(name), (*WINDOW, "groups"), ignored=FROM_SHAPES) for name in ("conv_input_grad", "conv_weight_grad")},
    **{name: Row(opaque(name), (*WINDOW, "window"), ignored=FROM_SHAPES)
       for name in ("max_pool", "average_pool", "max_pool_grad", "average_pool_grad")},
    "gather": Row(gather, ("axis",)), "gather_grad": Row(gather_grad, ("axis",), ignored=FROM_SHAPES),
    "gather_elements": Row(gather_elements, ("axis",)), "scatter_elements": Row(scatter_elements, ("axis", "reduction")),
    "arg_max": Row(arg_max, ("axis", "last"), defaults=dict(last=0)), "top_k": Row(top_k, ("smallest",), defaults=dict(smallest=0), ignored=("k",)),
    "cumsum": Row(cumsum, ("axis", "exclusive", "reverse"), defaults=dict(exclusive=0, reverse=0)),
    "cross_entropy": Row(opaque("cross_entropy"), ("ignore_index", "reduction", "classes"), defaults=dict(classes=0)),
    "cross_entropy_grad": Row(opaque("cross_entropy_grad"), ("ignore_index", "reduction", "classes"), defaults=dict(classes=0), over=(0,)),
    "cross_entropy_with_grad": Row(cross_entropy_with_grad, ("ignore_index", "reduction", "classes"), defaults=dict(classes=0), over=(0,), results_over=(2,)),
    "dropout": Row(dropout, ("ratio", "op_id"), over=(0,)), "uniform": Row(uniform, ("op_id",), ignored=("shape", "element_type")),
    "adamw": Row(optimizer("adamw", 2), ("beta1", "beta2", "epsilon", "weight_decay", "adam_w_mode", "cycled"), defaults=dict(cycled=0)),
    "sgd": Row(optimizer("sgd", 1), ("momentum", "weight_decay", "nesterov")), "adagrad": Row(optimizer("adagrad", 1), ("epsilon", "weight_decay", "lr_decay")),
    "lion": Row(optimizer("lion", 1), ("beta1", "beta2", "weight_decay", "cycled"), defaults=dict(cycled=0)),
    "lamb": Row(optimizer("lamb", 2, normed=True), ("beta1", "beta2", "epsilon", "weight_decay", "max_coeff", "min_coeff", "bias_correction",
                                                    "cycled"), defaults=dict(cycled=0)),
    "block_sum_squares": Row(block_sum_squares, ("block",), defaults=dict(block=1024)), "global_norm": Row(global_norm, ignored=("blocks",)),
    "clip_factor": Row(clip_factor, ("max_norm",)), **{name: Row(scalar(name), None) for name in ("learning_rate", "cycled_momentum")},
    "increment": Row(lambda algebra, inputs, *_: [inputs[0].data + 1]),
}


def call(algebra, kernel, inputs, attributes, results, place: Place):
    """The results' Tensors of a kernel's call."""
    row = ROWS[kernel]
    wanted = {name: attributes.get(name, row.defaults.get(name)) for name in (attributes if row.attributes is None else row.attributes)}
    unknown = [name for name in attributes if name not in wanted and name not in row.ignored]
    missing = [name for name, value in wanted.items() if value is None]
    if unknown or missing:
        raise Refusal(f"kernel {kernel} has no attribute {unknown[0]}" if unknown else f"kernel {kernel} lacks attribute {missing[0]}")
    return named(kernel, row.function(algebra, inputs, wanted, results, place), results)


def named(what, data, results):
    """Tensors of the types and shapes that the results are said to have."""
    if len(data) != len(results):
        raise Refusal(f"{what} has {len(data)} results, not {len(results)}")
    for array, (_, shape) in zip(data, results):
        if [size for size in array.shape if size != 1] != [size for size in shape if size != 1]:
            raise Refusal(f"{what} computes {list(array.shape)}, but its result is said to be {list(shape)}")
    return [Tensor(array.reshape(shape), dtype) for array, (dtype, shape) in zip(data, results)]


def train_call(algebra, op, inputs, attributes, results, place: Place):
    """The same of an op of the reference program."""
    name = op.removeprefix("train.")
    if name in UNARY_NAMES or name in BINARY_NAMES or name in ("select", "cast"):
        return named(op, [elementwise(algebra, name, results[0][0], inputs)], results)
    if name in ("reshape", "broadcast"):
        move = numpy.reshape if name == "reshape" else numpy.broadcast_to
        return [Tensor(move(inputs[0].data, results[0][1]), results[0][0])]
    if name not in ROWS or name == "elementwise":
        raise Refusal(f"the reference program has an op {op} that ds-audit does not know")
    row, said = ROWS[name], dict(attributes)
    for flag, without in (("bias", 4 if name == "fp8_matmul" else 2), ("mask", WITHOUT_MASK.get(name)), ("cycled", 6 if name == "lion" else 7)):
        if flag in (row.attributes or ()):
            said[flag] = int(len(inputs) > without)
    if name == "scatter_elements" or name.startswith("cross_entropy"):
        said.setdefault("reduction", "add" if name == "scatter_elements" else "mean")
    return call(algebra, name, inputs, said, results, place)
