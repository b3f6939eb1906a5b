//===- elementwise_cuda_run.h - the interpreter of one thread ------------===//
//
// A thread takes `width` elements in a row through all steps, so that a step is decoded once for them. Programs of
// float32, floats of 16 bits and bool alone compute in float (a bool is 0 or 1); the others in cells of 64 bits, one
// element at a time. Plain C++ that runs on the host too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "kernels/elementwise/elementwise_cuda_math.h"
#include "kernels/elementwise/elementwise_cuda_plan.h"

namespace ds::kernels::cuda {

/// A plan and the addresses of one launch, passed by value.
template <int maxSteps, int maxTensors> struct ElementwiseArguments {
  int steps, inputs, results, dimensions;
  int64_t elements;
  bool aligned;   ///< full tensors and results may be read and written four elements at a time
  bool wholeRows; ///< four elements in a row differ in the last dimension alone
  bool small;     ///< element numbers fit 32 bits
  int64_t sizes[maxRank];
  ElementwiseStep step[maxSteps];
  ElementwiseInput input[maxTensors];
  ElementwiseResult result[maxTensors];
  void *address[maxTensors]; ///< inputs, then results
};

inline constexpr int elementwiseWidth = 4;

/// A value of any type.
struct Cell {
  double f = 0;
  int64_t i = 0;
};

template <typename Arguments> struct ElementwiseThread {
  const Arguments &arguments;
  int64_t first; ///< element
  int count;     ///< elements, 1 to the width

  DS_OUT_OF_LINE int64_t offset(const ElementwiseInput &input, int w) const {
    if (input.spread == Spread::Full)
      return first + w;
    if (input.spread == Spread::Scalar)
      return 0;
    const int last = arguments.dimensions - 1;
    int64_t result = 0;
    if (arguments.small) {
      uint32_t rest = uint32_t(first + w);
      for (int d = last; d > 0; --d) {
        const auto size = uint32_t(arguments.sizes[d]);
        result += int64_t(rest % size) * input.strides[d];
        rest /= size;
      }
      return result + int64_t(rest) * input.strides[0];
    }
    int64_t rest = first + w;
    for (int d = last; d > 0; --d) {
      result += rest % arguments.sizes[d] * input.strides[d];
      rest /= arguments.sizes[d];
    }
    return result + rest * input.strides[0];
  }
};

template <typename T> struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

/// The path of float32, floats of 16 bits and bool: `slots` holds what later steps need. `Math` has unary() and
/// binary().
template <typename Arguments, int slotCount, typename Math> struct FloatElementwiseBy : ElementwiseThread<Arguments> {
  using Base = ElementwiseThread<Arguments>;
  static constexpr int width = elementwiseWidth;
  using Floats = Four<float>;
  Floats previous, slots[slotCount];

  DS_HOST_DEVICE FloatElementwiseBy(const Arguments &arguments, int64_t first)
      : Base{arguments, first, int(arguments.elements - first < width ? arguments.elements - first : width)} {
    for (int w = 0; w < width; ++w)
      previous.values[w] = 0;
  }

  template <typename T, typename Convert>
  DS_HOST_DEVICE Floats loadAs(const ElementwiseInput &input, const void *data, Convert convert) const {
    Floats to;
    if (input.spread == Spread::Full && Base::arguments.aligned && Base::count == width) {
      const auto four = *reinterpret_cast<const Four<T> *>(static_cast<const T *>(data) + Base::first);
      for (int w = 0; w < width; ++w)
        to.values[w] = convert(four.values[w]);
      return to;
    }
    const int64_t start = Base::offset(input, 0);
    const bool row = Base::arguments.wholeRows || input.spread != Spread::Strided;
    const int64_t stride = input.spread == Spread::Full     ? 1
                           : input.spread == Spread::Scalar ? 0
                                                            : input.strides[Base::arguments.dimensions - 1];
    for (int w = 0; w < width; ++w)
      if (w < Base::count)
        to.values[w] = convert(static_cast<const T *>(data)[row ? start + w * stride : Base::offset(input, w)]);
      else
        to.values[w] = 0;
    return to;
  }

  DS_OUT_OF_LINE Floats load(int index) const {
    const ElementwiseInput &input = Base::arguments.input[index];
    const void *data = Base::arguments.address[index];
    if (input.type == DType::F32)
      return loadAs<float>(input, data, [](float x) { return x; });
    if (input.type == DType::BF16)
      return loadAs<BFloat16>(input, data, [](BFloat16 x) { return float(x); });
    if (input.type == DType::F16)
      return loadAs<Float16>(input, data, [](Float16 x) { return float(x); });
    return loadAs<uint8_t>(input, data, [](uint8_t x) { return x ? 1.0f : 0.0f; });
  }

  DS_HOST_DEVICE Floats fetch(Source source, int index) const {
    if (source == Source::Input)
      return load(index);
    return source == Source::Slot ? slots[index] : previous;
  }

  template <typename T, typename Convert>
  DS_HOST_DEVICE void storeAs(void *data, const Floats &from, Convert convert) const {
    T *to = static_cast<T *>(data) + Base::first;
    if (Base::arguments.aligned && Base::count == width) {
      Four<T> four;
      for (int w = 0; w < width; ++w)
        four.values[w] = convert(from.values[w]);
      *reinterpret_cast<Four<T> *>(to) = four;
      return;
    }
    for (int w = 0; w < Base::count; ++w)
      to[w] = convert(from.values[w]);
  }

  DS_HOST_DEVICE static float rounded(DType type, float x) {
    if (type == DType::BF16)
      return float(BFloat16(x));
    if (type == DType::F16)
      return float(Float16(x));
    return x;
  }

  /// One step on the fetched operands; the opcode is the same for all threads.
  DS_HOST_DEVICE Floats evaluate(const ElementwiseStep &step) const {
    Floats a{}, b{}, c{}, r;
    if (step.sources[0] != Source::None)
      a = fetch(step.sources[0], step.indices[0]);
    if (step.sources[1] != Source::None)
      b = fetch(step.sources[1], step.indices[1]);
    if (step.sources[2] != Source::None)
      c = fetch(step.sources[2], step.indices[2]);
    const ElementwiseOp op = step.op;
    const auto each = [&](auto f) {
      for (int w = 0; w < width; ++w)
        r.values[w] = f(a.values[w], b.values[w], c.values[w]);
      return r;
    };
    if (op == ElementwiseOp::Constant) {
      const float value = step.type == DType::Bool ? float(step.constant != 0) : float(step.constant);
      return each([&](float, float, float) { return value; });
    }
    if (op == ElementwiseOp::Select)
      return each([](float x, float y, float z) { return x != 0 ? y : z; });
    if (op == ElementwiseOp::Add)
      return each([](float x, float y, float) { return x + y; });
    if (op == ElementwiseOp::Sub)
      return each([](float x, float y, float) { return x - y; });
    if (op == ElementwiseOp::Mul)
      return each([](float x, float y, float) { return x * y; });
    if (isComparison(op))
      return each([&](float x, float y, float) { return float(compared(op, x, y)); });
    if (isLogic(op))
      return each([&](float x, float y, float) { return float(logical(op, x, y)); });
    if (op == ElementwiseOp::Not)
      return each([](float x, float, float) { return float(x == 0); });
    if (op == ElementwiseOp::IsNan)
      return each([](float x, float, float) { return float(x != x); });
    if (op == ElementwiseOp::Cast && step.type == DType::Bool)
      return each([](float x, float, float) { return float(x != 0); });
    if (elementwiseArity(op) == 2)
      return each([&](float x, float y, float) { return binary(op, x, y); });
    return each([&](float x, float, float) { return unary(op, x); }); // Copy and Cast too
  }

  /// Out of line: with four copies of every function of the library within, a thread would need all its registers.
  DS_OUT_OF_LINE static float unary(ElementwiseOp op, float a) { return Math::unary(op, a); }
  DS_OUT_OF_LINE static float binary(ElementwiseOp op, float a, float b) { return Math::binary(op, a, b); }

  /// Results are written at the end: one may be the memory of an input.
  DS_HOST_DEVICE void run() {
    for (int k = 0; k < Base::arguments.steps; ++k) {
      const ElementwiseStep &step = Base::arguments.step[k];
      previous = evaluate(step);
      for (float &value : previous.values)
        value = rounded(step.type, value);
      if (step.slot != noSlot)
        slots[step.slot] = previous;
    }
    for (int r = 0; r < Base::arguments.results; ++r) {
      const ElementwiseResult &result = Base::arguments.result[r];
      void *to = Base::arguments.address[Base::arguments.inputs + r];
      const Floats values = fetch(result.source, result.index);
      if (result.type == DType::F32)
        storeAs<float>(to, values, [](float x) { return x; });
      else if (result.type == DType::BF16)
        storeAs<BFloat16>(to, values, [](float x) { return BFloat16(x); });
      else if (result.type == DType::F16)
        storeAs<Float16>(to, values, [](float x) { return Float16(x); });
      else
        storeAs<uint8_t>(to, values, [](float x) { return uint8_t(x != 0); });
    }
  }
};

/// By the functions of CUDA's library, or the host's.
struct LibraryMath {
  DS_HOST_DEVICE static float unary(ElementwiseOp op, float a) { return floatUnary(op, a); }
  DS_HOST_DEVICE static float binary(ElementwiseOp op, float a, float b) { return floatBinary(op, a, b); }
};
template <typename Arguments, int slotCount>
using FloatElementwise = FloatElementwiseBy<Arguments, slotCount, LibraryMath>;

/// The path of all types, one element at a time: floats as double, rounded to their type after each step, integers and
/// bools as int64, wrapped to theirs.
template <typename Arguments, int slotCount> struct CellElementwise : ElementwiseThread<Arguments> {
  using Base = ElementwiseThread<Arguments>;
  static constexpr int width = 1;
  Cell previous, slots[slotCount];
  bool dividesByZero = false;

  DS_HOST_DEVICE CellElementwise(const Arguments &arguments, int64_t first) : Base{arguments, first, 1} {}

  DS_HOST_DEVICE static bool isFloating(DType type) {
    return type == DType::F32 || type == DType::F64 || type == DType::BF16 || type == DType::F16;
  }

  DS_HOST_DEVICE Cell load(int index) const {
    const ElementwiseInput &input = Base::arguments.input[index];
    const void *data = Base::arguments.address[index];
    const int64_t at = Base::offset(input, 0);
    switch (input.type) {
    case DType::F32:
      return {double(static_cast<const float *>(data)[at]), 0};
    case DType::F64:
      return {static_cast<const double *>(data)[at], 0};
    case DType::BF16:
      return {double(float(static_cast<const BFloat16 *>(data)[at])), 0};
    case DType::F16:
      return {double(float(static_cast<const Float16 *>(data)[at])), 0};
    case DType::Bool:
    case DType::U8:
      return {0, static_cast<const uint8_t *>(data)[at]};
    case DType::U16:
      return {0, static_cast<const uint16_t *>(data)[at]};
    case DType::U32:
      return {0, static_cast<const uint32_t *>(data)[at]};
    case DType::I32:
      return {0, static_cast<const int32_t *>(data)[at]};
    case DType::I64:
      break;
    }
    return {0, static_cast<const int64_t *>(data)[at]};
  }

  DS_HOST_DEVICE void store(void *data, DType type, Cell cell) const {
    const int64_t at = Base::first;
    switch (type) {
    case DType::F32:
      static_cast<float *>(data)[at] = float(cell.f);
      return;
    case DType::F64:
      static_cast<double *>(data)[at] = cell.f;
      return;
    case DType::BF16:
      static_cast<BFloat16 *>(data)[at] = BFloat16(float(cell.f));
      return;
    case DType::F16:
      static_cast<Float16 *>(data)[at] = Float16(float(cell.f));
      return;
    case DType::Bool:
    case DType::U8:
      static_cast<uint8_t *>(data)[at] = uint8_t(cell.i);
      return;
    case DType::U16:
      static_cast<uint16_t *>(data)[at] = uint16_t(cell.i);
      return;
    case DType::U32:
    case DType::I32:
      static_cast<uint32_t *>(data)[at] = uint32_t(cell.i);
      return;
    case DType::I64:
      static_cast<int64_t *>(data)[at] = cell.i;
      return;
    }
  }

  DS_HOST_DEVICE Cell fetch(Source source, int index) const {
    return source == Source::Input ? load(index) : source == Source::Slot ? slots[index] : previous;
  }

  /// What a register of the type holds.
  DS_HOST_DEVICE static Cell fitted(DType type, Cell cell) {
    if (type == DType::F32)
      return {double(float(cell.f)), 0};
    if (type == DType::BF16)
      return {double(float(BFloat16(float(cell.f)))), 0};
    if (type == DType::F16)
      return {double(float(Float16(float(cell.f)))), 0};
    return type == DType::F64 ? Cell{cell.f, 0} : Cell{0, wrapped(type, cell.i)};
  }

  DS_HOST_DEVICE static Cell cast(Cell cell, DType from, DType to) {
    if (isFloating(to)) // one rounding, straight from the integer
      return isFloating(from) ? cell : Cell{to == DType::F64 ? double(cell.i) : double(float(cell.i)), 0};
    if (to == DType::Bool)
      return {0, isFloating(from) ? cell.f != 0 : cell.i != 0};
    return isFloating(from) ? Cell{0, truncatedTo(to, cell.f)} : cell;
  }

  DS_HOST_DEVICE Cell floatResult(const ElementwiseStep &step, Cell a, Cell b) const {
    const bool binary = elementwiseArity(step.op) == 2;
    if (step.type == DType::F64)
      return {binary ? floatBinary(step.op, a.f, b.f) : floatUnary(step.op, a.f), 0};
    const float x = float(a.f), y = float(b.f);
    return {double(binary ? floatBinary(step.op, x, y) : floatUnary(step.op, x)), 0};
  }

  DS_HOST_DEVICE Cell evaluate(const ElementwiseStep &step) {
    const ElementwiseOp op = step.op;
    if (op == ElementwiseOp::Constant)
      return isFloating(step.type) ? Cell{step.constant, 0} : cast({step.constant, 0}, DType::F64, step.type);
    const Cell a = fetch(step.sources[0], step.indices[0]);
    if (op == ElementwiseOp::Cast)
      return cast(a, step.from, step.type);
    const Cell b = step.sources[1] == Source::None ? Cell{} : fetch(step.sources[1], step.indices[1]);
    if (op == ElementwiseOp::Select)
      return a.i ? b : fetch(step.sources[2], step.indices[2]);
    if (op == ElementwiseOp::IsNan)
      return {0, a.f != a.f};
    if (isComparison(op))
      return {0, isFloating(step.from) ? compared(op, a.f, b.f) : compared(op, a.i, b.i)};
    if (isFloating(step.type))
      return floatResult(step, a, b);
    if (op == ElementwiseOp::Div && b.i == 0) {
      dividesByZero = true;
      return {};
    }
    return {0, integerResult(op, a.i, b.i)};
  }

  DS_HOST_DEVICE void run() {
    for (int k = 0; k < Base::arguments.steps; ++k) {
      const ElementwiseStep &step = Base::arguments.step[k];
      previous = fitted(step.type, evaluate(step));
      if (step.slot != noSlot)
        slots[step.slot] = previous;
    }
    for (int r = 0; r < Base::arguments.results; ++r) {
      const ElementwiseResult &result = Base::arguments.result[r];
      store(Base::arguments.address[Base::arguments.inputs + r], result.type, fetch(result.source, result.index));
    }
  }
};

/// What of a launch's arguments is known when the kernel is made.
template <typename Arguments> Arguments elementwiseArguments(const ElementwisePlan &plan) {
  Arguments arguments{};
  arguments.steps = int(plan.steps.size());
  arguments.inputs = int(plan.inputs.size());
  arguments.results = int(plan.results.size());
  arguments.dimensions = int(plan.sizes.size());
  arguments.elements = plan.elements;
  arguments.wholeRows = plan.sizes.empty() || plan.sizes.back() % elementwiseWidth == 0;
  arguments.small = plan.elements <= int64_t(UINT32_MAX) - elementwiseWidth;
  for (size_t d = 0; d < plan.sizes.size(); ++d)
    arguments.sizes[d] = plan.sizes[d];
  for (size_t k = 0; k < plan.steps.size(); ++k)
    arguments.step[k] = plan.steps[k];
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    arguments.input[i] = plan.inputs[i];
  for (size_t r = 0; r < plan.results.size(); ++r)
    arguments.result[r] = plan.results[r];
  return arguments;
}

/// Adds the addresses of one execute.
template <typename Arguments>
void setAddresses(Arguments &arguments, const ElementwisePlan &plan, void *const *operands) {
  arguments.aligned = true;
  const size_t inputs = plan.inputs.size();
  for (size_t i = 0; i < inputs + plan.results.size(); ++i) {
    arguments.address[i] = operands[i];
    const bool full = i >= inputs || plan.inputs[i].spread == Spread::Full;
    const DType type = i >= inputs ? plan.results[i - inputs].type : plan.inputs[i].type;
    if (full && reinterpret_cast<uintptr_t>(operands[i]) % uintptr_t(elementwiseWidth * byteSize(type)) != 0)
      arguments.aligned = false;
  }
}

} // namespace ds::kernels::cuda
