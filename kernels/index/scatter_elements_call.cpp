#include "kernels/index/scatter_elements_call.h"

#include <algorithm>

namespace ds::kernels {

ScatterElementsCall::ScatterElementsCall(const Call &call)
    : index(call, 0, 1), data(call.shape(0)), updates(call.shape(1)), axis(call.axis(data)), dtype(call.dtype(0)),
      indexType(call.dtype(1)) {
  call.expectOperands(4);
  call.expectDType(2, dtype);
  call.expectShape(2, updates);
  call.expectDType(3, dtype);
  call.expectShape(3, data);
  const std::string &name = call.text("reduction");
  const char *const names[] = {"replace", "add", "mul", "max", "min"};
  const auto *found = std::find(std::begin(names), std::end(names), name);
  call.require(found != std::end(names), "reduction '" + name + "' is none of replace, add, mul, max, min");
  reduction = ScatterReduction(found - std::begin(names));
  call.require(dtype != DType::Bool || reduction == ScatterReduction::Replace,
               "reduction '" + name + "' does not exist on bool");
}

} // namespace ds::kernels
