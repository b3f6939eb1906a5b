//===- scatter_elements_call.h - the call of scatter_elements ------------===//
#pragma once

#include "kernels/HostDevice.h"
#include "kernels/index/element_index_call.h"

#include <cmath>
#include <string>
#include <type_traits>

namespace ds::kernels {

enum class ScatterReduction { Replace, Add, Mul, Max, Min };

/// data, indices, updates, y; checked.
struct ScatterElementsCall {
  explicit ScatterElementsCall(const Call &call);

  ElementIndex index;
  Shape data, updates;
  size_t axis;
  DType dtype, indexType;
  ScatterReduction reduction;
};

/// An element that an update meets; integers wrap, NaN wins.
template <typename T> DS_HOST_DEVICE T combined(ScatterReduction reduction, T old, T update) {
  switch (reduction) {
  case ScatterReduction::Replace:
    return update;
  case ScatterReduction::Add:
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(old) + uint64_t(update));
    else
      return old + update;
  case ScatterReduction::Mul:
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(old) * uint64_t(update));
    else
      return old * update;
  case ScatterReduction::Max:
    return old > update || old != old ? old : update;
  case ScatterReduction::Min:
    break;
  }
  return old < update || old != old ? old : update;
}

} // namespace ds::kernels
