#include "kernels/index/search_call.h"

namespace ds::kernels {

ArgMaxCall::ArgMaxCall(const Call &call) : dtype(call.dtype()), last(call.flag("last")) {
  Shape expected = call.shape("x");
  const size_t axis = call.axis(expected);
  x = viewAlong(expected, axis);
  call.require(x.length > 0, "axis " + std::to_string(axis) + " of x " + toString(expected) + " has no elements");
  expected.erase(expected.begin() + int64_t(axis));
  call.expectShape("y", expected);
}

TopKCall::TopKCall(const Call &call) : dtype(call.dtype()), smallest(call.flag("smallest")) {
  length = call.shape("x").back();
  k = call.shape("values").back();
  call.require(k <= length,
               "the last dimension of x has " + std::to_string(length) + " elements, not " + std::to_string(k));
  rows = k == 0 ? 0 : call.elements("values") / k;
}

CumSumCall::CumSumCall(const Call &call)
    : x(viewAlong(call.shape("x"), call.axis(call.shape("x")))), dtype(call.dtype()), exclusive(call.flag("exclusive")),
      reverse(call.flag("reverse")) {}

} // namespace ds::kernels
