#include "kernels/elementwise/elementwise_cuda_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ds::kernels::cuda {

namespace {

bool isOfFloatPath(DType type) { return type == DType::F32 || isNarrowFloat(type) || type == DType::Bool; }

/// The last step that reads each register; `steps` for a result, -1 where nobody does.
std::vector<int64_t> lastUses(const ElementwiseCall &call) {
  std::vector<int64_t> last(call.types.size(), -1);
  for (size_t k = 0; k < call.program.size(); ++k)
    for (int source : call.program[k].sources)
      if (source >= 0)
        last[size_t(source)] = int64_t(k);
  for (int result : call.results)
    last[size_t(result)] = int64_t(call.program.size());
  return last;
}

} // namespace

ElementwisePlan::ElementwisePlan(const Call &checked) {
  const ElementwiseCall call(checked);
  elements = call.elements;
  for (DType type : call.types)
    allFloat = allFloat && isOfFloatPath(type);
  mergeDimensions(call);
  assignSlots(call);
  checked.require(slots <= mostSlots, "the program keeps " + std::to_string(slots) + " values at once; a GPU keeps " +
                                          std::to_string(mostSlots));
  checked.require(steps.size() <= size_t(mostSteps), "the program has " + std::to_string(steps.size()) +
                                                         " instructions; a GPU takes " + std::to_string(mostSteps));
  checked.require(inputs.size() + results.size() <= size_t(mostTensors),
                  "the program has " + std::to_string(inputs.size() + results.size()) + " tensors; a GPU takes " +
                      std::to_string(mostTensors));
}

/// Neighbouring dimensions that every input walks as one become one.
void ElementwisePlan::mergeDimensions(const ElementwiseCall &call) {
  std::vector<std::array<int64_t, maxRank>> strides;
  for (const Shape &shape : call.inputShapes)
    strides.push_back(broadcastStrides(shape, call.shape));
  std::vector<size_t> ends; ///< the innermost of each group of merged dimensions
  for (size_t d = 0; d < call.shape.size(); ++d) {
    if (call.shape[d] == 1)
      continue;
    const bool follows = !ends.empty() && std::all_of(strides.begin(), strides.end(), [&](const auto &own) {
      return own[ends.back()] == own[d] * call.shape[d];
    });
    if (follows) {
      sizes.back() *= call.shape[d];
      ends.back() = d;
    } else {
      sizes.push_back(call.shape[d]);
      ends.push_back(d);
    }
  }
  for (size_t i = 0; i < call.inputs; ++i) {
    ElementwiseInput input{call.types[i], Spread::Strided, {}};
    for (size_t g = 0; g < ends.size(); ++g)
      input.strides[g] = strides[i][ends[g]];
    const bool scalar = std::all_of(input.strides, input.strides + ends.size(), [](int64_t s) { return s == 0; });
    if (elementCount(call.inputShapes[i]) == call.elements)
      input.spread = Spread::Full;
    else if (scalar)
      input.spread = Spread::Scalar;
    inputs.push_back(input);
  }
}

void ElementwisePlan::assignSlots(const ElementwiseCall &call) {
  const std::vector<int64_t> last = lastUses(call);
  const auto count = int64_t(call.program.size());
  std::vector<uint16_t> slotOf(call.types.size(), noSlot), freeSlots;
  const auto placeOf = [&](int reg) -> std::pair<Source, uint16_t> {
    if (slotOf[size_t(reg)] != noSlot)
      return {Source::Slot, slotOf[size_t(reg)]};
    if (reg < int(call.inputs))
      return {Source::Input, uint16_t(reg)};
    return {Source::Previous, 0}; // only the step behind it reads it
  };
  // An input that is a result as it is could be written over before it is read, where another result has its memory.
  for (int result : call.results)
    if (result < int(call.inputs) && slotOf[size_t(result)] == noSlot) {
      const DType type = call.types[size_t(result)];
      slotOf[size_t(result)] = uint16_t(slots++);
      steps.push_back({ElementwiseOp::Copy,
                       type,
                       type,
                       {Source::Input, Source::None, Source::None},
                       {uint16_t(result), 0, 0},
                       slotOf[size_t(result)],
                       0});
    }
  for (int64_t k = 0; k < count; ++k) {
    const ElementwiseInstruction &instruction = call.program[size_t(k)];
    ElementwiseStep step{instruction.op, instruction.type, instruction.type, {}, {}, noSlot, instruction.constant};
    for (size_t s = 0; s < 3; ++s)
      if (instruction.sources[s] >= 0)
        std::tie(step.sources[s], step.indices[s]) = placeOf(instruction.sources[s]);
    if (instruction.sources[0] >= 0)
      step.from = call.types[size_t(instruction.sources[0])];
    for (size_t s = 0; s < 3; ++s) { // slots read for the last time, once each
      const int source = instruction.sources[s];
      if (source < int(call.inputs) || last[size_t(source)] != k || slotOf[size_t(source)] == noSlot)
        continue;
      freeSlots.push_back(slotOf[size_t(source)]);
      slotOf[size_t(source)] = noSlot;
    }
    const size_t reg = call.inputs + size_t(k);
    if (last[reg] > k + 1 || (last[reg] == count && k + 1 < count)) {
      if (freeSlots.empty())
        freeSlots.push_back(uint16_t(slots++));
      step.slot = slotOf[reg] = freeSlots.back();
      freeSlots.pop_back();
    }
    steps.push_back(step);
  }
  for (int result : call.results) {
    const auto [source, index] = placeOf(result);
    results.push_back({call.types[size_t(result)], source, index});
  }
}

} // namespace ds::kernels::cuda
