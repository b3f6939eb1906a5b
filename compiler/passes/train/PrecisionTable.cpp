//===- PrecisionTable.cpp - what of an op has 16 bits, what stays f32 ------===//
//
// The one place that decides. Gradients follow: differentiation gives each operand a gradient of its own type. Result
// types follow from operands by each op's shape rule (statistics, log sums and losses of 16 bits are f32).
// Cf. the lists of torch.autocast (aten/src/ATen/autocast_mode.h) and of Micikevicius et al., ICLR 2018: products in
// low precision, sums of many elements and losses in full.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/PrecisionTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace ds;

using enum OpKind;

static constexpr OpPrecision table[] = {
    // Elementwise: a chain is computed in f32.
    {"add", "F", Elementwise},
    {"sub", "F", Elementwise},
    {"mul", "F", Elementwise},
    {"div", "F", Elementwise},
    {"pow", "F", Elementwise},
    {"max", "F", Elementwise},
    {"min", "F", Elementwise},
    {"neg", "F", Elementwise},
    {"abs", "F", Elementwise},
    {"sqrt", "F", Elementwise},
    {"rsqrt", "F", Elementwise},
    {"reciprocal", "F", Elementwise},
    {"exp", "F", Elementwise},
    {"log", "F", Elementwise},
    {"log1p", "F", Elementwise},
    {"expm1", "F", Elementwise},
    {"gelu_tanh", "F", Elementwise},
    {"gelu_tanh_slope", "F", Elementwise},
    {"erf", "F", Elementwise},
    {"tanh", "F", Elementwise},
    {"sigmoid", "F", Elementwise},
    {"relu", "F", Elementwise},
    {"sin", "F", Elementwise},
    {"cos", "F", Elementwise},
    {"atan", "F", Elementwise},
    {"sign", "F", Elementwise},
    {"floor", "F", Elementwise},
    {"ceil", "F", Elementwise},
    {"round", "F", Elementwise},
    {"is_nan", "F", Elementwise},
    {"equal", "F", Elementwise},
    {"less", "F", Elementwise},
    {"less_equal", "F", Elementwise},
    {"greater", "F", Elementwise},
    {"greater_equal", "F", Elementwise},
    {"select", ".F", Elementwise},
    // Movement.
    {"reshape", "L", Movement},
    {"transpose", "L", Movement},
    {"broadcast", "L", Movement},
    {"slice", "L", Movement},
    {"pad", "L", Movement},
    {"concat", "L", Movement},
    {"gather", "L.", Movement},
    {"gather_elements", "L.", Movement},
    {"scatter_elements", "L.L"},
    {"top_k", "L"},
    {"arg_max", "L"},
    // Products: sums in f32, rounded once. Pools: a few elements.
    {"matmul", "L"},
    {"attention", "L"}, // a mask of i1 is none of floats
    {"packed_attention", "L"},
    {"conv", "L"},
    {"max_pool", "L"},
    {"average_pool", "L"},
    {"reduce_max", "L"},
    // Sums of many elements.
    {"reduce_sum", "L", Sum},
    {"reduce_mean", "L", Sum},
    {"cumsum", "F"},
    // Dropout, softmax and norms: activations 16 bits; scales, shifts and statistics f32.
    {"dropout", "L"},
    {"softmax", "L"},
    {"layer_norm", "LF"},
    {"rms_norm", "LF"},
    {"batch_norm", "LF"},
    // Losses.
    {"cross_entropy", "L."}, // loss and log sums f32
    {"log_softmax", "F"},
    // Explicit conversions, and state.
    {"cast", "."},
    {"store", "F"},
    {"update_average", "F"},
};

llvm::ArrayRef<OpPrecision> ds::precisionTable() { return table; }

const OpPrecision *ds::precisionOf(llvm::StringRef op) {
  const auto *row = llvm::find_if(table, [&](const OpPrecision &candidate) { return candidate.op == op; });
  return row == std::end(table) ? nullptr : row;
}
