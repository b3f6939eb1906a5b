#include "kernels/movement/movement_call.h"

#include "kernels/Numbers.h"

#include <cstring>

namespace ds::kernels {

TransposeCall::TransposeCall(const Call &call) {
  x = call.shape("x");
  y = call.shape("y");
  perm = call.integers("perm");
  elementBytes = byteSize(call.dtype());
  call.require(perm.size() == x.size(),
               "attribute 'perm' has " + std::to_string(perm.size()) + " entries for rank " + std::to_string(x.size()));
  std::vector<bool> seen(x.size());
  Shape expected;
  for (int64_t axis : perm) {
    call.require(axis >= 0 && axis < int64_t(x.size()) && !seen[size_t(axis)],
                 "attribute 'perm' " + toString(perm) + " is not a permutation of the axes");
    seen[size_t(axis)] = true;
    expected.push_back(x[size_t(axis)]);
  }
  call.expectShape("y", expected);
}

namespace {

/// A list attribute with one entry for each dimension of x.
std::vector<int64_t> perDimension(const Call &call, const char *name) {
  std::vector<int64_t> list = call.integers(name);
  call.require(list.size() == call.shape("x").size(), "attribute '" + std::string(name) + "' has " +
                                                          std::to_string(list.size()) + " entries for rank " +
                                                          std::to_string(call.shape("x").size()));
  return list;
}

void expectSameRank(const Call &call) {
  call.require(call.shape("x").size() == call.shape("y").size(),
               "x " + toString(call.shape("x")) + " and y " + toString(call.shape("y")) + " differ in rank");
}

/// Whether start + (count - 1) * step is below `size`; for count 0, whether start is at most `size`.
bool fits(int64_t start, int64_t step, int64_t count, int64_t size) {
  if (count == 0)
    return start >= 0 && step >= 1;
  return start >= 0 && step >= 1 && start < size && (count - 1) <= (size - 1 - start) / step;
}

} // namespace

SliceCall::SliceCall(const Call &call) {
  expectSameRank(call);
  x = call.shape("x");
  y = call.shape("y");
  starts = perDimension(call, "starts");
  steps = perDimension(call, "steps");
  elementBytes = byteSize(call.dtype());
  for (size_t d = 0; d < x.size(); ++d)
    call.require(fits(starts[d], steps[d], y[d], x[d]), "dimension " + std::to_string(d) + ": " + std::to_string(y[d]) +
                                                            " elements from " + std::to_string(starts[d]) +
                                                            " in steps of " + std::to_string(steps[d]) + " leave x " +
                                                            toString(x));
}

PadCall::PadCall(const Call &call) {
  expectSameRank(call);
  x = call.shape("x");
  y = call.shape("y");
  low = perDimension(call, "low");
  spacing = perDimension(call, "interior");
  elementBytes = byteSize(call.dtype());
  for (size_t d = 0; d < x.size(); ++d) {
    call.require(spacing[d] >= 0 && spacing[d] < INT64_MAX,
                 "attribute 'interior' must not be negative: " + toString(spacing));
    ++spacing[d];
    call.require(fits(low[d], spacing[d], x[d], y[d]), "dimension " + std::to_string(d) + ": x " + toString(x) +
                                                           " placed at " + std::to_string(low[d]) + " every " +
                                                           std::to_string(spacing[d]) + " leaves y " + toString(y));
  }
  storeDouble(value.data(), call.dtype(), call.number("value"));
}

ConcatCall::ConcatCall(const Call &call) {
  const size_t inputs = call["y"];
  call.require(inputs > 0, "needs an input");
  const Shape &y = call.shape(inputs);
  const size_t axis = call.axis(y);
  Shape expected = y;
  expected[axis] = 0;
  for (size_t i = 0; i < inputs; ++i) {
    const Shape &x = call.shape(i);
    call.require(x.size() == y.size(),
                 "input " + std::to_string(i) + " " + toString(x) + " and y " + toString(y) + " differ in rank");
    Shape like = y;
    like[axis] = x[axis];
    call.expectShape(i, like);
    // Adds up dimensions of tensors that exist; the running sum stays at most y's.
    call.require(x[axis] <= y[axis] - expected[axis],
                 "the inputs have more than y's " + std::to_string(y[axis]) + " elements along the axis");
    expected[axis] += x[axis];
    const AxisView view = viewAlong(x, axis);
    inner.push_back(view.length * view.inner * byteSize(call.dtype()));
    innerTotal += inner.back();
  }
  call.expectShape(inputs, expected);
  outer = viewAlong(y, axis).outer;
}

} // namespace ds::kernels
