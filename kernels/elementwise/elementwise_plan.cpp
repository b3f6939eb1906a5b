#include "kernels/elementwise/elementwise_plan.h"

#include "kernels/Numbers.h"

#include <algorithm>
#include <cstring>

namespace ds::kernels {

namespace {

constexpr int64_t largestTile = 1024, smallestTile = 64;

class Planner {
public:
  Planner(const Call &call, const ElementwiseCall &program, ElementwisePlan &plan)
      : call_(call), program_(program), plan_(plan), places_(program.types.size()) {}

  void run() {
    for (size_t i = 0; i < program_.inputs; ++i)
      placeInput(i);
    findLastUses();
    saveInputsThatAreResults();
    // Constants first: their slots are filled before the program runs, so they must not have been another register's.
    for (size_t k = 0; k < program_.program.size(); ++k)
      if (program_.program[k].op == ElementwiseOp::Constant)
        placeConstant(program_.inputs + k, program_.program[k]);
    for (size_t k = 0; k < program_.program.size(); ++k)
      if (program_.program[k].op != ElementwiseOp::Constant)
        placeInstruction(k);
    for (size_t r = 0; r < program_.results.size(); ++r)
      if (written_[r] == 0)
        plan_.copies.push_back({places_[size_t(program_.results[r])], int(program_.inputs + r), resultBytes(r)});
    chooseTile();
  }

private:
  int64_t resultBytes(size_t r) const { return byteSize(program_.types[size_t(program_.results[r])]); }

  int takeSlot() {
    if (!free_.empty()) {
      const int slot = free_.back();
      free_.pop_back();
      return slot;
    }
    call_.require(plan_.slots < elementwiseMaxSlots, "the program needs more than " +
                                                         std::to_string(elementwiseMaxSlots) +
                                                         " registers at a time; split it");
    return plan_.slots++;
  }

  /// Merges the dimensions over which the input is one run; decides how it is read.
  void placeInput(size_t i) {
    const auto strides = broadcastStrides(program_.inputShapes[i], program_.shape);
    BroadcastInput input{int(i), -1, byteSize(program_.types[i]), {}, {}};
    for (size_t d = 0; d < program_.shape.size(); ++d) {
      const int64_t size = program_.shape[d], stride = strides[d];
      if (size == 1)
        continue;
      if (!input.sizes.empty() && input.strides.back() == stride * size) {
        input.sizes.back() *= size;
        input.strides.back() = stride;
      } else {
        input.sizes.push_back(size);
        input.strides.push_back(stride);
      }
    }
    if (input.sizes.empty() || (input.sizes.size() == 1 && input.strides[0] == 1)) {
      places_[i] = {ElementwisePlace::Operand, int(i)};
      return;
    }
    const int slot = takeSlot();
    places_[i] = {ElementwisePlace::Slot, slot};
    if (input.sizes.size() == 1 && input.strides[0] == 0) {
      plan_.filled.push_back({slot, int(i), program_.types[i], 0});
      return;
    }
    input.slot = slot;
    plan_.broadcasts.push_back(std::move(input));
  }

  void findLastUses() {
    lastUse_.assign(program_.types.size(), 0);
    for (size_t k = 0; k < program_.program.size(); ++k)
      for (int source : program_.program[k].sources)
        if (source >= 0) {
          lastUse_[size_t(source)] = k;
          if (isInPlaceInput(source))
            lastRead_[byteSize(program_.types[size_t(source)])] = k;
        }
    for (int result : program_.results)
      lastUse_[size_t(result)] = program_.program.size();
    written_.assign(program_.results.size(), 0);
  }

  bool isInPlaceInput(int reg) const {
    return size_t(reg) < program_.inputs && places_[size_t(reg)].kind == ElementwisePlace::Operand;
  }

  void saveInputsThatAreResults() {
    for (int result : program_.results)
      if (isInPlaceInput(result)) {
        const ElementwisePlace slot{ElementwisePlace::Slot, takeSlot()};
        plan_.saved.push_back({slot, {places_[size_t(result)], result, byteSize(program_.types[size_t(result)])}});
        places_[size_t(result)] = slot;
      }
  }

  void placeConstant(size_t reg, const ElementwiseInstruction &instruction) {
    FilledSlot filled{-1, -1, instruction.type, 0};
    storeDouble(&filled.value, instruction.type, instruction.constant);
    for (const FilledSlot &other : plan_.filled)
      if (other.operand < 0 && other.type == filled.type && other.value == filled.value)
        filled.slot = other.slot;
    if (filled.slot < 0) {
      filled.slot = takeSlot();
      plan_.filled.push_back(filled);
    }
    places_[reg] = {ElementwisePlace::Slot, filled.slot};
  }

  void placeInstruction(size_t k) {
    const ElementwiseInstruction &instruction = program_.program[k];
    const size_t reg = program_.inputs + k;
    ElementwiseStep step{k, {}, {}};
    for (size_t s = 0; s < 3; ++s)
      if (instruction.sources[s] >= 0)
        step.sources[s] = places_[size_t(instruction.sources[s])];
    places_[reg] = step.target = placeTarget(k, reg);
    plan_.steps.push_back(step);
    releaseSources(k, instruction);
    if (lastUse_[reg] <= k) // never read
      release(reg);
  }

  /// The result's own memory, unless an input that may be the same memory is still to be read; else a slot.
  ElementwisePlace placeTarget(size_t k, size_t reg) {
    const auto later = lastRead_.find(byteSize(program_.types[reg]));
    const bool safe = later == lastRead_.end() || later->second <= k;
    for (size_t r = 0; safe && r < program_.results.size(); ++r)
      if (size_t(program_.results[r]) == reg) {
        written_[r] = 1;
        return {ElementwisePlace::Operand, int(program_.inputs + r)};
      }
    return {ElementwisePlace::Slot, takeSlot()};
  }

  void releaseSources(size_t k, const ElementwiseInstruction &instruction) {
    for (size_t s = 0; s < 3; ++s) {
      const int source = instruction.sources[s];
      const bool again = std::find(instruction.sources.begin(), instruction.sources.begin() + int64_t(s), source) !=
                         instruction.sources.begin() + int64_t(s);
      // Slots of inputs and constants are filled before the program runs and stay.
      if (source >= int(program_.inputs) && !again && lastUse_[size_t(source)] == k &&
          program_.program[size_t(source) - program_.inputs].op != ElementwiseOp::Constant)
        release(size_t(source));
    }
  }

  void release(size_t reg) {
    if (places_[reg].kind == ElementwisePlace::Slot)
      free_.push_back(places_[reg].index);
  }

  void chooseTile() {
    int64_t widest = 1;
    for (DType type : program_.types)
      widest = std::max(widest, byteSize(type));
    const int64_t fitting = elementwiseScratchBytes / (std::max(plan_.slots, 1) * widest);
    const int64_t largest = std::clamp(fitting / smallestTile * smallestTile, smallestTile, largestTile);
    plan_.tile = largest;
    // A tile within one row of a broadcast input needs no copy of it: prefer a tile that divides the row.
    for (const BroadcastInput &input : plan_.broadcasts)
      if (input.strides.back() == 1 && input.sizes.back() >= 4 * smallestTile) {
        const int64_t row = input.sizes.back();
        for (int64_t parts = piecesOf(row, largest); row / parts >= 2 * smallestTile; ++parts)
          if (row % parts == 0) {
            plan_.tile = row / parts;
            break;
          }
        break;
      }
    plan_.slotBytes = plan_.tile * widest;
  }

  const Call &call_;
  const ElementwiseCall &program_;
  ElementwisePlan &plan_;
  std::vector<ElementwisePlace> places_; ///< by register
  std::vector<size_t> lastUse_;          ///< by register: the last instruction that reads it
  std::map<int64_t, size_t> lastRead_;   ///< by element bytes: the last instruction that reads an input in place
  std::vector<char> written_;            ///< by result: written in place
  std::vector<int> free_;                ///< slots that can be taken again
};

} // namespace

ElementwisePlan::ElementwisePlan(const Call &call, const ElementwiseCall &program) {
  Planner(call, program, *this).run();
}

} // namespace ds::kernels
