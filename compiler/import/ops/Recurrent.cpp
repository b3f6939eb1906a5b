//===- Recurrent.cpp - LSTM, GRU and RNN, step by step -------------------------------------------------===//
//
// The products with the inputs of all steps are one; each step then multiplies the state. Gradients are those of these
// operators, summed over the steps.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include "llvm/ADT/StringRef.h"

namespace ds::import::ops {
namespace {

using State = std::vector<Value>; // of [batch, hidden]: the hidden state, and the cell of an LSTM

/// What an LSTM, GRU or RNN node says.
struct Recurrence {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, gates = 0, directions = 1;
  bool batchFirst = false, startsReversed = false;
  std::vector<std::string> activations; // of the first direction, then of the second
  double clip = 0;                      // 0: none
  Value x;                              // [steps * batch, inputs]
  std::optional<Value> lengths;         // [batch, 1], where some sequence may be shorter

  int64_t rows() const { return gates * hidden; }
  bool isReversed(int64_t direction) const { return startsReversed || direction == 1; }
};

/// Parameters of one direction.
struct Layer {
  Value weight, recurrent;              // [gates * hidden, inputs], [gates * hidden, hidden]
  std::optional<Value> bias, stateBias; // [gates * hidden]
  std::vector<std::string> activations;
};

Value product(Node &node, const Value &rows, const Value &weight, const std::optional<Value> &bias) {
  llvm::SmallVector<mlir::Value, 3> operands{node.operand(rows), node.operand(weight)};
  if (bias)
    operands.push_back(node.operand(*bias));
  const auto transposed = node.builder().getNamedAttr("trans_b", node.builder().getUnitAttr());
  return Value::of(node.create<train::MatmulOp>(operands, {transposed}).getResult());
}

/// Gate k of [batch, gates * hidden].
Value gate(Node &node, const Recurrence &r, const Value &gates, int64_t k) {
  return sliceAlong(node, gates, 1, k * r.hidden, r.hidden);
}

Value activate(Node &node, const Recurrence &r, const std::string &name, Value x) {
  const Algebra math(node);
  if (r.clip > 0)
    x = math.min(math.max(x, -r.clip), r.clip);
  const llvm::StringRef word(name);
  if (word.equals_insensitive("sigmoid"))
    return math.sigmoid(x);
  if (word.equals_insensitive("tanh"))
    return math.tanh(x);
  if (word.equals_insensitive("relu"))
    return unary<train::ReluOp>(node, UnaryFold::Relu, x);
  throw Failure("the activation '" + name + "' is not available; Sigmoid, Tanh and Relu are");
}

//===-- reading the node --------------------------------------------------------===//

void readActivations(Node &node, Recurrence &r, const std::vector<std::string> &usual) {
  r.activations = node.stringsAttr("activations");
  if (r.activations.empty())
    for (int64_t d = 0; d < r.directions; ++d)
      r.activations.insert(r.activations.end(), usual.begin(), usual.end());
  if (r.activations.size() != usual.size() * size_t(r.directions))
    throw Failure("there are " + std::to_string(r.activations.size()) + " activations where " +
                  std::to_string(usual.size() * size_t(r.directions)) + " are needed");
}

void expect(const Value &value, const Shape &shape, const char *what) {
  if (value.shape != shape)
    throw Failure("the " + std::string(what) + " " + toString(value.shape) + " must be " + toString(shape));
}

/// Lengths [batch] of the sequences; nothing where all are known to be whole.
void readLengths(Node &node, Recurrence &r) {
  if (!node.has(4))
    return;
  const Value &given = node.in(4);
  expect(given, {r.batch}, "lengths of the sequences");
  if (const std::optional<Constant> known = node.graph().known(given)) {
    const std::vector<int64_t> lengths = known->toIntegers();
    if (std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length >= r.steps; }))
      return;
  }
  r.lengths = reshape(node, cast(node, given, DType::I64), {r.batch, 1});
}

Recurrence readRecurrence(Node &node, int64_t gates, const std::vector<std::string> &usual) {
  Recurrence r;
  r.gates = gates;
  const Value x = node.floatIn(0), recurrent = node.floatIn(2);
  if (x.rank() != 3 || recurrent.rank() != 3)
    throw Failure("the input " + toString(x.shape) + " and the recurrent weights " + toString(recurrent.shape) +
                  " must have three dimensions");
  const std::string direction = node.stringAttr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    throw Failure("direction '" + direction + "' is none of 'forward', 'reverse' and 'bidirectional'");
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.startsReversed = direction == "reverse";
  r.batchFirst = node.integerAttr("layout", 0) != 0;
  r.clip = node.floatAttr("clip", 0);
  r.steps = x.shape[r.batchFirst ? 1 : 0];
  r.batch = x.shape[r.batchFirst ? 0 : 1];
  r.inputs = x.shape[2];
  r.hidden = recurrent.shape[2];
  if (r.steps < 1 || r.hidden < 1 || r.hidden > (int64_t(1) << 32) ||
      node.integerAttr("hidden_size", r.hidden) != r.hidden)
    throw Failure("needs a step or more and hidden_size as the recurrent weights " + toString(recurrent.shape) +
                  " have it");
  expect(node.floatIn(1), {r.directions, r.rows(), r.inputs}, "weights");
  expect(recurrent, {r.directions, r.rows(), r.hidden}, "recurrent weights");
  const Value stepsFirst = r.batchFirst ? transpose(node, x, {1, 0, 2}) : x;
  r.x = reshape(node, stepsFirst, {r.steps * r.batch, r.inputs});
  readActivations(node, r, usual);
  readLengths(node, r);
  return r;
}

/// Entry `direction` of a tensor whose first dimension counts directions.
Value ofDirection(Node &node, const Value &value, int64_t direction) {
  return reshape(node, sliceAlong(node, value, 0, direction, 1), Shape(value.shape.begin() + 1, value.shape.end()));
}

/// One bias for all, or with `apart` one for the products with inputs and one for those with states.
Layer layerOf(Node &node, const Recurrence &r, int64_t direction, bool apart) {
  Layer layer{ofDirection(node, node.in(1), direction), ofDirection(node, node.in(2), direction), {}, {}, {}};
  const auto count = int64_t(r.activations.size()) / r.directions;
  layer.activations.assign(r.activations.begin() + direction * count, r.activations.begin() + (direction + 1) * count);
  if (!node.has(3))
    return layer;
  expect(node.floatIn(3), {r.directions, 2 * r.rows()}, "biases");
  const Value both = ofDirection(node, node.in(3), direction);
  layer.bias = sliceAlong(node, both, 0, 0, r.rows());
  layer.stateBias = sliceAlong(node, both, 0, r.rows(), r.rows());
  if (!apart) {
    layer.bias = Algebra(node).add(*layer.bias, *layer.stateBias);
    layer.stateBias.reset();
  }
  return layer;
}

/// The first states of a direction, from inputs 5 and 6, or zeros.
State firstStates(Node &node, const Recurrence &r, int64_t direction, size_t count) {
  State state;
  for (size_t k = 0; k < count; ++k) {
    const Shape shape{r.batch, r.hidden};
    if (!node.has(5 + k)) {
      state.push_back(broadcastTo(node, floatScalar(r.x.dtype, 0), shape));
      continue;
    }
    const Shape whole = r.batchFirst ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
    Value given = node.floatIn(5 + k);
    if (given.isConstant() && node.graph().opensBatch()) // of the one sample that the file says
      given = broadcastTo(node, given, whole);
    expect(given, whole, "first states");
    state.push_back(ofDirection(node, r.batchFirst ? transpose(node, given, {1, 0, 2}) : given, direction));
  }
  return state;
}

//===-- the steps ---------------------------------------------------------------===//

/// Runs `step(layer, direction, gates from the input, state) -> state` over the sequence in each direction and sets the
/// outputs: all hidden states, then the last states.
template <typename StepFn> void unroll(Node &node, const Recurrence &r, size_t states, bool apart, StepFn step) {
  const Algebra math(node);
  std::vector<Value> all;                        // by direction, [steps, 1, batch, hidden]
  std::vector<std::vector<Value>> lasts(states); // by state and direction, [1, batch, hidden]
  for (int64_t d = 0; d < r.directions; ++d) {
    const Layer layer = layerOf(node, r, d, apart);
    const Value projected = product(node, r.x, layer.weight, layer.bias); // [steps * batch, gates * hidden]
    State state = firstStates(node, r, d, states);
    std::vector<Value> outputs(size_t(r.steps));
    for (int64_t i = 0; i < r.steps; ++i) {
      const int64_t t = r.isReversed(d) ? r.steps - 1 - i : i;
      State next = step(layer, d, sliceAlong(node, projected, 0, t * r.batch, r.batch), state);
      Value output = next[0];
      if (r.lengths) { // behind its end a sequence keeps its state and gives zeros
        const Value inside = math.less(math.number(DType::I64, double(t)), *r.lengths);
        for (size_t k = 0; k < states; ++k)
          next[k] = math.choose(inside, next[k], state[k]);
        output = math.choose(inside, output, 0);
      }
      outputs[size_t(t)] = reshape(node, output, {1, 1, r.batch, r.hidden});
      state = std::move(next);
    }
    if (node.wants(0))
      all.push_back(join(node, outputs, 0));
    for (size_t k = 0; k < states; ++k)
      lasts[k].push_back(reshape(node, state[k], {1, r.batch, r.hidden}));
  }
  if (node.wants(0)) {
    const Value sequence = join(node, all, 1);
    node.set(0, r.batchFirst ? transpose(node, sequence, {2, 0, 1, 3}) : sequence);
  }
  for (size_t k = 0; k < states; ++k) {
    const Value last = join(node, lasts[k], 0);
    node.set(1 + k, r.batchFirst ? transpose(node, last, {1, 0, 2}) : last);
  }
}

} // namespace

/// h = f(W x + R h + b).
void rnn(Node &node) {
  const Recurrence r = readRecurrence(node, 1, {"Tanh"});
  unroll(node, r, 1, false, [&](const Layer &layer, int64_t, const Value &fromInput, const State &state) {
    const Value sum = Algebra(node).add(fromInput, product(node, state[0], layer.recurrent, {}));
    return State{activate(node, r, layer.activations[0], sum)};
  });
}

/// Gates z, r and h: h' = g(Wh x + r (Rh h)) or, with the reset before the product, g(Wh x + Rh (r h)); then
/// (1 - z) h' + z h.
void gru(Node &node) {
  const Recurrence r = readRecurrence(node, 3, {"Sigmoid", "Tanh"});
  const bool resetsLast = node.integerAttr("linear_before_reset", 0) != 0; // as PyTorch
  const int64_t width = r.hidden;
  unroll(node, r, 1, resetsLast, [&](const Layer &layer, int64_t, const Value &fromInput, const State &state) {
    const Algebra math(node);
    const Value &h = state[0];
    const Value used = resetsLast ? layer.recurrent : sliceAlong(node, layer.recurrent, 0, 0, 2 * width);
    const Value fromState = product(node, h, used, layer.stateBias);
    auto gated = [&](int64_t k) {
      const Value sum = math.add(gate(node, r, fromInput, k), gate(node, r, fromState, k));
      return activate(node, r, layer.activations[0], sum);
    };
    const Value z = gated(0), reset = gated(1);
    const Value recalled =
        resetsLast ? math.mul(reset, gate(node, r, fromState, 2))
                   : product(node, math.mul(reset, h), sliceAlong(node, layer.recurrent, 0, 2 * width, width), {});
    const Value fresh = activate(node, r, layer.activations[1], math.add(gate(node, r, fromInput, 2), recalled));
    return State{math.add(fresh, math.mul(z, math.sub(h, fresh)))};
  });
}

/// Gates i, o, f and c, with peepholes P of i, o and f: c = f c + i g(..), h = o h(c).
void lstm(Node &node) {
  const Recurrence r = readRecurrence(node, 4, {"Sigmoid", "Tanh", "Tanh"});
  if (node.integerAttr("input_forget", 0) != 0)
    throw Failure("input_forget=1 is not available");
  if (node.has(7))
    expect(node.floatIn(7), {r.directions, 3 * r.hidden}, "peepholes");
  unroll(node, r, 2, false, [&](const Layer &layer, int64_t d, const Value &fromInput, const State &state) {
    const Algebra math(node);
    const Value gates = math.add(fromInput, product(node, state[0], layer.recurrent, {}));
    auto peeped = [&](int64_t k, const Value &cell) {
      const Value sum = gate(node, r, gates, k);
      if (!node.has(7))
        return activate(node, r, layer.activations[0], sum);
      const Value peephole = sliceAlong(node, ofDirection(node, node.in(7), d), 0, k * r.hidden, r.hidden);
      return activate(node, r, layer.activations[0], math.add(sum, math.mul(peephole, cell)));
    };
    const Value input = peeped(0, state[1]), forget = peeped(2, state[1]);
    const Value fresh = activate(node, r, layer.activations[1], gate(node, r, gates, 3));
    const Value cell = math.add(math.mul(forget, state[1]), math.mul(input, fresh));
    const Value output = peeped(1, cell);
    return State{math.mul(output, activate(node, r, layer.activations[2], cell)), cell};
  });
}

} // namespace ds::import::ops
