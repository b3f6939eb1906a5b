// elementwise: a straight-line program on every element (ElementwiseProgram.h).
//
// A tile interpreter: for each tile of up to 1024 elements the instructions run one after the other, each a vectorised
// loop (elementwise_loops.h) whose operands are still in the first-level cache. So a chain of k instructions reads and
// writes main memory once, not k times. Every element is computed by itself: the bits depend on nothing else.
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "kernels/elementwise/elementwise_call.h"
#include "kernels/elementwise/elementwise_narrow.h"
#include "kernels/elementwise/elementwise_plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace ds::kernels {

namespace {

using TileLoop = void (*)(const void *a, const void *b, const void *c, void *result, int64_t count);

} // namespace

} // namespace ds::kernels

#define DS_LOOPS "kernels/elementwise/elementwise_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t tilesPerPiece = 16;

void fill(std::byte *to, const void *element, int64_t elementBytes, int64_t count) {
  const auto fillAs = [&](auto value) {
    std::memcpy(&value, element, sizeof(value));
    std::fill_n(reinterpret_cast<decltype(value) *>(to), count, value);
  };
  switch (elementBytes) {
  case 1:
    return fillAs(uint8_t{});
  case 2:
    return fillAs(uint16_t{});
  case 4:
    return fillAs(uint32_t{});
  default:
    return fillAs(uint64_t{});
  }
}

void copyRun(std::byte *to, const std::byte *from, int64_t stride, int64_t elementBytes, int64_t count) {
  if (stride == 0)
    return fill(to, from, elementBytes, count);
  if (stride == 1) {
    std::memcpy(to, from, size_t(count * elementBytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * elementBytes, from + i * stride * elementBytes, size_t(elementBytes));
}

/// Elements [begin, begin + count) of a broadcast input: an address inside of it where they follow each other, else
/// copied to `to`.
const std::byte *loadBroadcast(const BroadcastInput &input, const std::byte *data, int64_t begin, int64_t count,
                               std::byte *to) {
  std::array<int64_t, maxRank> index{};
  const size_t last = input.sizes.size() - 1;
  int64_t offset = 0;
  for (size_t d = input.sizes.size(); d-- > 0;) {
    index[d] = begin % input.sizes[d];
    begin /= input.sizes[d];
    offset += index[d] * input.strides[d];
  }
  if (input.strides[last] == 1 && index[last] + count <= input.sizes[last])
    return data + offset * input.elementBytes;
  for (int64_t done = 0; done < count;) {
    const int64_t run = std::min(count - done, input.sizes[last] - index[last]);
    copyRun(to + done * input.elementBytes, data + offset * input.elementBytes, input.strides[last], input.elementBytes,
            run);
    done += run;
    offset += run * input.strides[last];
    index[last] += run;
    for (size_t d = last; d > 0 && index[d] == input.sizes[d]; --d) {
      offset += input.strides[d - 1] - index[d] * input.strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
  return to;
}

bool holdsZero(const void *data, DType type, int64_t count) {
  return withType(type, [&](auto zero) {
    const auto *divisors = static_cast<const decltype(zero) *>(data);
    return std::find(divisors, divisors + count, zero) != divisors + count;
  });
}

class Elementwise : public Kernel {
public:
  explicit Elementwise(const Call &call) : call_(call), plan_(call, call_) {
    for (const ElementwiseStep &step : plan_.steps)
      loops_.push_back(loopFor(call_.program[step.instruction]));
    for (size_t i = 0; i < call.operandCount(); ++i)
      elementBytes_.push_back(byteSize(call.dtype(i)));
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    zeroDivisorAt_.store(INT64_MAX, std::memory_order_relaxed);
    const int64_t piece = plan_.tile * tilesPerPiece;
    parallelFor(context, piecesOf(call_.elements, piece), [&](int64_t index, int) {
      runPiece(operands, index * piece, std::min(piece, call_.elements - index * piece));
    });
    const int64_t at = zeroDivisorAt_.load(std::memory_order_relaxed);
    if (at != INT64_MAX)
      return Status::failure("kernel 'elementwise': integer division by zero in elements [%lld, %lld)",
                             static_cast<long long>(at),
                             static_cast<long long>(std::min(at + plan_.tile, call_.elements)));
    return Status::success();
  }

private:
  using Operands = std::span<void *const>;

  /// The registers of one tile.
  struct Tile {
    Operands operands;
    int64_t begin, count;
    std::array<const std::byte *, elementwiseMaxSlots> slot;
  };

  TileLoop loopFor(const ElementwiseInstruction &instruction) const {
    const auto source = [&](size_t s) { return size_t(instruction.sources[s]); };
    if (instruction.op == ElementwiseOp::Pow && source(1) >= call_.inputs) {
      const ElementwiseInstruction &exponent = call_.program[source(1) - call_.inputs];
      if (exponent.op == ElementwiseOp::Constant)
        if (TileLoop loop = DS_BEST(constantPowerLoop)(instruction.type, exponent.constant))
          return loop;
    }
    const DType from = instruction.op == ElementwiseOp::Select ? instruction.type : call_.types[source(0)];
    // A select between bools moves bytes.
    if (instruction.op == ElementwiseOp::Select && from == DType::Bool)
      return DS_BEST(loopOf)(instruction.op, DType::U8, DType::U8);
    return DS_BEST(loopOf)(instruction.op, from, instruction.type);
  }

  std::byte *operandAt(const Tile &tile, int operand) const {
    return static_cast<std::byte *>(tile.operands[size_t(operand)]) + tile.begin * elementBytes_[size_t(operand)];
  }

  const std::byte *read(const Tile &tile, ElementwisePlace place) const {
    if (place.kind == ElementwisePlace::Slot)
      return tile.slot[size_t(place.index)];
    return place.kind == ElementwisePlace::Operand ? operandAt(tile, place.index) : nullptr;
  }

  void runPiece(Operands operands, int64_t begin, int64_t count) noexcept {
    alignas(64) std::byte scratch[elementwiseScratchBytes];
    Tile tile{operands, begin, 0, {}};
    for (int slot = 0; slot < plan_.slots; ++slot)
      tile.slot[size_t(slot)] = scratch + slot * plan_.slotBytes;
    for (const FilledSlot &filled : plan_.filled)
      fill(scratch + filled.slot * plan_.slotBytes,
           filled.operand < 0 ? static_cast<const void *>(&filled.value) : operands[size_t(filled.operand)],
           byteSize(filled.type), std::min(plan_.tile, count));
    for (int64_t done = 0; done < count; done += plan_.tile) {
      tile.begin = begin + done;
      tile.count = std::min(plan_.tile, count - done);
      runTile(tile, scratch);
    }
  }

  void runTile(Tile &tile, std::byte *scratch) noexcept {
    for (const BroadcastInput &input : plan_.broadcasts)
      tile.slot[size_t(input.slot)] =
          loadBroadcast(input, static_cast<const std::byte *>(tile.operands[size_t(input.operand)]), tile.begin,
                        tile.count, scratch + input.slot * plan_.slotBytes);
    for (const auto &[slot, copy] : plan_.saved)
      std::memcpy(scratch + slot.index * plan_.slotBytes, operandAt(tile, copy.operand),
                  size_t(tile.count * copy.elementBytes));
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      runStep(tile, scratch, plan_.steps[s], loops_[s]);
    for (const ElementwiseCopy &copy : plan_.copies)
      std::memcpy(operandAt(tile, copy.operand), read(tile, copy.from), size_t(tile.count * copy.elementBytes));
  }

  void runStep(const Tile &tile, std::byte *scratch, const ElementwiseStep &step, TileLoop loop) noexcept {
    const ElementwiseInstruction &instruction = call_.program[step.instruction];
    const std::byte *b = read(tile, step.sources[1]);
    std::byte *to = step.target.kind == ElementwisePlace::Slot ? scratch + step.target.index * plan_.slotBytes
                                                               : operandAt(tile, step.target.index);
    if (instruction.op == ElementwiseOp::Div && !isFloat(instruction.type) &&
        holdsZero(b, instruction.type, tile.count)) {
      int64_t earliest = zeroDivisorAt_.load(std::memory_order_relaxed);
      while (tile.begin < earliest &&
             !zeroDivisorAt_.compare_exchange_weak(earliest, tile.begin, std::memory_order_relaxed))
        ;
      std::memset(to, 0, size_t(tile.count * byteSize(instruction.type)));
      return;
    }
    loop(read(tile, step.sources[0]), b, read(tile, step.sources[2]), to, tile.count);
  }

  ElementwiseCall call_;
  ElementwisePlan plan_;
  std::vector<TileLoop> loops_; ///< by step
  std::vector<int64_t> elementBytes_;
  std::atomic<int64_t> zeroDivisorAt_{INT64_MAX}; ///< first element of the first tile with one
};

} // namespace

std::unique_ptr<Kernel> makeElementwise(const Invocation &invocation, const BuildOptions &) {
  const ElementwiseCall call{Call(invocation)};
  if (usesNarrowFloat(call))
    return std::make_unique<Elementwise>(Call(widenProgram(invocation, call)));
  return std::make_unique<Elementwise>(Call(invocation));
}

} // namespace ds::kernels
