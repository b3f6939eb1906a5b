#include "kernels/index/scatter_elements_call.h"

#include <algorithm>

namespace ds::kernels {

ScatterElementsCall::ScatterElementsCall(const Call &call)
    : index(call), data(call.shape("data")), updates(call.shape("updates")), axis(call.axis(data)), dtype(call.dtype()),
      indexType(call.dtype("indices")) {
  const std::string &name = call.text("reduction");
  const char *const names[] = {"replace", "add", "mul", "max", "min"};
  reduction = ScatterReduction(std::find(std::begin(names), std::end(names), name) - std::begin(names));
  call.require(dtype != DType::Bool || reduction == ScatterReduction::Replace,
               "reduction '" + name + "' does not exist on bool");
}

} // namespace ds::kernels
