//===- CodeRules.cpp - kernels that a plan carries do what their commands say -===//
#include "compiler/check/meaning/CodeRules.h"

#include "compiler/check/meaning/DrawnMemory.h"
#include "compiler/check/meaning/Mismatch.h"
#include "core/Error.h"
#include "kernels/elementwise/elementwise_cuda_run.h"
#include "kernels/ptx/Ptx.h"
#include "runtime/plan/Invocations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace ds::check {

namespace {

using kernels::ElementwiseCall;
using kernels::ElementwiseOp;

constexpr uint32_t wholeBlocks = 16, drawnBlocks = 6;
constexpr uint64_t mostInstructionsOfThread = 1 << 16;

/// Whether the bits of a step's result depend on how a function is computed.
bool isFunction(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Exp:
  case ElementwiseOp::Log:
  case ElementwiseOp::Erf:
  case ElementwiseOp::Tanh:
  case ElementwiseOp::Sigmoid:
  case ElementwiseOp::Sin:
  case ElementwiseOp::Cos:
  case ElementwiseOp::Atan:
  case ElementwiseOp::Pow:
    return true;
  default:
    return false;
  }
}

/// One call and the code that is to compute it.
class CodeCheck {
public:
  CodeCheck(const kernels::Invocation &call, const proto::DeviceCode &code, std::span<const uint64_t> alignments)
      : call_(call), program_(kernels::Call(call)), code_(code), module_(ptx::parse(code.text())),
        exact_(std::ranges::none_of(program_.program, isFunction, &kernels::ElementwiseInstruction::op)),
        memory_(call_, program_.inputs, alignments, exact_) {}

  void require(const std::string &isa) {
    requireForm(isa);
    runBlocks();
    requireCoverage();
    requireValues();
  }

private:
  /// sm_90 runs what is for sm_90 and older ones.
  static int numberOf(const std::string &target) { return std::atoi(target.c_str() + std::strlen("sm_")); }

  void requireForm(const std::string &isa) const {
    if (module_.entries.size() != 1 || module_.entries[0].name != code_.name())
      throw Error("its PTX does not have it as its one entry");
    const ptx::Entry &entry = module_.entries[0];
    if (!entry.approximations.empty())
      throw Error("its bits depend on the GPU: it uses " + *entry.approximations.begin());
    if (numberOf(module_.target) > numberOf(isa))
      throw Error("it is for " + module_.target + ", but the plan for " + isa);
    const size_t operands = call_.operands.size();
    if (entry.parameterBytes != std::vector<uint32_t>(operands, 8))
      throw Error("it does not take " + std::to_string(operands) + " addresses");
  }

  /// All, or the first, the last two and some that are drawn.
  void runBlocks() {
    const uint32_t blocks = code_.blocks();
    if (blocks <= wholeBlocks) {
      ran_ = {{0, blocks}};
    } else {
      std::set<uint32_t> chosen{0, blocks - 2, blocks - 1};
      for (uint64_t draw = 0; chosen.size() < 3 + drawnBlocks; ++draw)
        chosen.insert(uint32_t(mixed(draw) % blocks));
      for (const uint32_t block : chosen)
        ran_.emplace_back(block, block + 1);
    }
    for (const auto &[first, end] : ran_)
      ptx::run(module_, code_.name(), {blocks, code_.threads(), false, first, end}, memory_.addresses(), memory_,
               {.instructionsOfThread = mostInstructionsOfThread});
  }

  /// A thread writes a group of elements in a row, the first threads the first groups, and those behind the last whole
  /// group an element each. So what a block writes follows from its number.
  void requireCoverage() const {
    const int64_t threads = code_.threads();
    for (const auto &written : memory_.written()) {
      int64_t group = 0; // of the first thread: it runs first, and alone writes elements before the second's
      while (group < 16 && written.contains(group))
        ++group;
      bool fits = false;
      for (const int64_t width : {1, 2, 4, 8, 16})
        fits |= width <= group && matches(written, width, threads);
      if (!fits)
        throw Error("the elements that its blocks write are not those of their places in the grid");
    }
  }

  bool matches(const std::map<int64_t, uint32_t> &written, int64_t width, int64_t threads) const {
    const int64_t groups = program_.elements / width, rest = program_.elements % width;
    const auto elementOf = [&](int64_t thread) { // the first that a thread of the grid writes
      return std::min(program_.elements, thread <= groups ? thread * width : groups * width + (thread - groups));
    };
    if (int64_t(code_.blocks()) * threads < groups + rest)
      return false;
    size_t count = 0;
    for (const auto &[first, end] : ran_) {
      const int64_t from = elementOf(int64_t(first) * threads), to = elementOf(int64_t(end) * threads);
      const auto begin = written.lower_bound(from), behind = written.lower_bound(to);
      if (std::distance(begin, behind) != to - from)
        return false;
      count += size_t(to - from);
    }
    return count == written.size();
  }

  /// The call of the elements that were written alone: inputs gathered, no broadcasts.
  kernels::Invocation gathered(int64_t count) const {
    kernels::Invocation few = call_;
    for (kernels::TensorType &operand : few.operands)
      operand.shape = {count};
    return few;
  }

  void requireValues() {
    const auto &written = memory_.written();
    std::vector<int64_t> elements;
    for (const auto &[element, value] : written[0])
      elements.push_back(element);
    const kernels::Invocation few = gathered(int64_t(elements.size()));
    std::vector<std::vector<std::byte>> storage;
    std::vector<void *> addresses;
    for (const kernels::TensorType &operand : few.operands)
      storage.emplace_back(elements.size() * size_t(byteSize(operand.dtype)));
    for (std::vector<std::byte> &bytes : storage)
      addresses.push_back(bytes.data());
    gather(elements, storage);
    interpret(few, addresses);
    const std::vector<float> largest = exact_ ? std::vector<float>(elements.size()) : largestWithin(few, addresses);
    for (size_t r = 0; r < written.size(); ++r) {
      const DType type = few.operands[program_.inputs + r].dtype;
      size_t same = 0;
      for (size_t i = 0; i < elements.size(); ++i)
        same += isEqual(r, elements[i], type, written[r].at(elements[i]),
                        valueOf(storage[program_.inputs + r], type, i), largest[i]);
      // What a function is off by seldom reaches the last place of a bfloat16; where two numbers cancel, in 3 of 100.
      if (kernels::usesNarrowFloat(program_) && elements.size() - same > elements.size() / 16 + 1)
        throw Error("its result " + std::to_string(r) + " has other bits than the program's in " +
                    std::to_string(elements.size() - same) + " of " + std::to_string(elements.size()) + " elements");
    }
  }

  void gather(const std::vector<int64_t> &elements, std::vector<std::vector<std::byte>> &storage) const {
    for (size_t input = 0; input < program_.inputs; ++input) {
      const auto strides = kernels::broadcastStrides(program_.inputShapes[input], program_.shape);
      const DType type = call_.operands[input].dtype;
      const auto bytes = size_t(byteSize(type));
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto index = kernels::unravel(elements[i], program_.shape);
        int64_t place = 0;
        for (size_t d = 0; d < program_.shape.size(); ++d)
          place += index[d] * strides[d];
        const uint32_t value = memory_.input(input, place);
        std::memcpy(storage[input].data() + i * bytes, &value, bytes);
      }
    }
  }

  /// For each element the largest size of all that the program computes on its way: it runs again, with its registers
  /// as results.
  std::vector<float> largestWithin(const kernels::Invocation &few, const std::vector<void *> &addresses) const {
    constexpr size_t atOnce = 32;
    std::vector<float> largest(size_t(few.operands[0].shape[0]));
    for (size_t first = program_.inputs; first < program_.types.size(); first += atOnce) {
      const size_t end = std::min(first + atOnce, program_.types.size());
      kernels::Invocation probe = few;
      std::vector<int64_t> registers(end - first);
      std::iota(registers.begin(), registers.end(), int64_t(first));
      probe.attributes["results"] = registers;
      probe.operands.resize(program_.inputs);
      std::vector<void *> places(addresses.begin(), addresses.begin() + std::ptrdiff_t(program_.inputs));
      std::vector<std::vector<std::byte>> storage;
      for (size_t r = first; r < end; ++r) {
        probe.operands.push_back({program_.types[r], few.operands[0].shape});
        storage.emplace_back(size_t(few.operands[0].shape[0] * byteSize(program_.types[r])));
        places.push_back(storage.back().data());
      }
      interpret(probe, places);
      for (size_t r = first; r < end; ++r)
        for (size_t i = 0; i < largest.size(); ++i)
          if (const float value =
                  std::fabs(floatOf(program_.types[r], valueOf(storage[r - first], program_.types[r], i)));
              std::isfinite(value))
            largest[i] = std::max(largest[i], value);
    }
    return largest;
  }

  static uint32_t valueOf(const std::vector<std::byte> &bytes, DType type, size_t i) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + i * size_t(byteSize(type)), size_t(byteSize(type)));
    return value;
  }
  static void interpret(const kernels::Invocation &few, const std::vector<void *> &addresses) {
    using namespace kernels::cuda;
    using Arguments = ElementwiseArguments<mostSteps, mostTensors>;
    const ElementwisePlan plan{kernels::Call(few)};
    if (!plan.allFloat)
      throw Error("its program computes in other types than float32, bfloat16 and bool");
    Arguments arguments = elementwiseArguments<Arguments>(plan);
    setAddresses(arguments, plan, addresses.data());
    using Thread = FloatElementwise<Arguments, mostSlots>;
    for (int64_t first = 0; first < plan.elements; first += Thread::width)
      Thread(arguments, first).run();
  }

  /// Whether the bits are equal. Throws where more than a function's error lies between them.
  bool isEqual(size_t result, int64_t element, DType type, uint32_t own, uint32_t wanted, float largest) const {
    const float a = floatOf(type, own), b = floatOf(type, wanted);
    if (own == wanted || (std::isnan(a) && std::isnan(b)))
      return true;
    // It may move what is rounded to bfloat16 by a unit of its last place, here and there on the way.
    const float unit = kernels::usesNarrowFloat(program_) ? 0x1p-6f : 0x1p-18f;
    if (!exact_ && type != DType::Bool && std::fabs(a - b) <= unit * largest)
      return false;
    throw Error("it makes " + std::to_string(a) + " of element " + std::to_string(element) + " of result " +
                std::to_string(result) + ", where the program makes " + std::to_string(b));
  }

  const kernels::Invocation call_;
  const ElementwiseCall program_;
  const proto::DeviceCode &code_;
  const ptx::Module module_;
  const bool exact_;
  DrawnMemory memory_;
  std::vector<std::pair<uint32_t, uint32_t>> ran_; ///< blocks [first, end)
};

/// The greatest power of two up to 16 that divides an operand's address, of every rank and slot.
uint64_t alignmentOf(const proto::Role &role, const proto::Operand &operand) {
  const proto::Buffer &buffer = role.buffers(int(operand.buffer()));
  uint64_t result = std::gcd<uint64_t>(16, buffer.offset());
  for (const uint64_t offset : buffer.slot_offsets())
    result = std::gcd(result, offset);
  return std::gcd(std::gcd(result, operand.byte_offset()), operand.rank_stride());
}

/// Calls that were checked; each is what a code must compute, and where it may count on its operands to lie.
using Known = std::set<std::string>;

void requireCode(const proto::Plan &plan, const proto::Role &role, const proto::KernelCommand &command, Known &known) {
  proto::KernelCommand form = command;
  std::vector<uint64_t> alignments;
  for (proto::Operand &operand : *form.mutable_operands()) {
    alignments.push_back(alignmentOf(role, operand));
    operand.set_buffer(0);
    operand.set_byte_offset(alignments.back());
    operand.set_rank_stride(0);
    operand.set_communicator(0);
  }
  if (!known.insert(form.SerializeAsString()).second)
    return;
  const proto::DeviceCode &code = plan.codes(int(command.code()));
  try {
    CodeCheck(plan::invocationOf(command), code, alignments).require(plan.machine().isa());
  } catch (const Error &error) {
    throw Mismatch{"code " + std::to_string(command.code()) + " (" + code.name() + "): " + error.what()};
  }
}

void requireCodesOf(const proto::Plan &plan, const google::protobuf::RepeatedPtrField<proto::Role> &roles,
                    Known &known) {
  for (const proto::Role &role : roles)
    for (const proto::Routine &routine : role.routines())
      for (int i = 0; i < routine.commands_size(); ++i)
        try {
          const proto::Command &command = routine.commands(i);
          if (command.has_kernel() && command.kernel().has_code())
            requireCode(plan, role, command.kernel(), known);
        } catch (const Mismatch &mismatch) {
          throw Mismatch{"role " + role.name() + ", routine " + routine.name() + ", command " + std::to_string(i) +
                         ": " + mismatch.sentence};
        }
}

} // namespace

void requireCodes(const proto::Plan &plan) {
  Known known;
  requireCodesOf(plan, plan.roles(), known);
}

} // namespace ds::check
