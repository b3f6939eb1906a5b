// kernels/elementwise/elementwise_ptx.cpp: whether PTX computes the program of a call.
#include "kernels/elementwise/elementwise_ptx.h"

#include "core/Error.h"
#include "kernels/elementwise/drawn_memory_ptx.h"
#include "kernels/elementwise/elementwise_compiled_math.h"
#include "kernels/elementwise/elementwise_cuda_run.h"
#include "kernels/ptx/Ptx.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace ds::kernels {

namespace {

using Bytes = std::vector<std::byte>;

constexpr uint32_t wholeBlocks = 16, drawnBlocks = 6;
constexpr uint64_t mostInstructionsOfThread = 1 << 16;

/// One call and the code that is to compute it.
class CodeCheck {
public:
  CodeCheck(const Invocation &call, std::span<const uint64_t> alignments, uint64_t seed)
      : call_(call), program_(Call(call)), code_(call.code.value()), module_(ptx::parse(code_.text)), seed_(seed),
        memory_(call_, program_.inputs, alignments, seed) {}

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
    if (module_.entries.size() != 1 || module_.entries[0].name != code_.name)
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
    const uint32_t blocks = code_.blocks;
    if (blocks <= wholeBlocks) {
      ran_ = {{0, blocks}};
    } else {
      std::set<uint32_t> chosen{0, blocks - 2, blocks - 1};
      for (uint64_t draw = 0; chosen.size() < 3 + drawnBlocks; ++draw)
        chosen.insert(uint32_t(mixed(seed_ + draw) % blocks));
      for (const uint32_t block : chosen)
        ran_.emplace_back(block, block + 1);
    }
    for (const auto &[first, end] : ran_)
      ptx::run(module_, code_.name, {blocks, code_.threads, false, first, end}, memory_.addresses(), memory_,
               {.instructionsOfThread = mostInstructionsOfThread});
  }

  /// A thread writes a group of elements in a row, the first threads the first groups, and those behind the last whole
  /// group an element each. So what a block writes follows from its number.
  void requireCoverage() const {
    const int64_t threads = code_.threads;
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
    if (int64_t(code_.blocks) * threads < groups + rest)
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
  Invocation gathered(int64_t count) const {
    Invocation few = call_;
    for (TensorType &operand : few.operands)
      operand.shape = {count};
    return few;
  }

  void requireValues() {
    const auto &written = memory_.written();
    std::vector<int64_t> elements;
    for (const auto &[element, value] : written[0])
      elements.push_back(element);
    const Invocation few = gathered(int64_t(elements.size()));
    // A power by 2 is a product where the program says the number, and none where it happens to be drawn.
    const std::vector<Bytes> wanted = resultsOf<CompiledMath<true>>(few, elements);
    const std::vector<Bytes> others = hasPowers() ? resultsOf<CompiledMath<false>>(few, elements) : wanted;
    for (size_t r = 0; r < written.size(); ++r) {
      const DType type = few.operands[program_.inputs + r].dtype;
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto found = written[r].find(elements[i]);
        if (found == written[r].end())
          throw Error("it writes other elements of one result than of another");
        const uint32_t own = found->second;
        if (!isEqual(type, own, valueOf(wanted[r], type, i)) && !isEqual(type, own, valueOf(others[r], type, i)))
          refuse(r, elements[i], floatOf(type, own), floatOf(type, valueOf(wanted[r], type, i)));
      }
    }
  }

  bool hasPowers() const {
    return std::ranges::any_of(program_.program, [](const auto &step) { return step.op == ElementwiseOp::Pow; });
  }

  /// The interpreter's results for some elements, their inputs gathered.
  template <typename Math>
  std::vector<Bytes> resultsOf(const Invocation &few, const std::vector<int64_t> &elements) const {
    std::vector<Bytes> storage;
    std::vector<void *> addresses;
    for (const TensorType &operand : few.operands)
      storage.emplace_back(elements.size() * size_t(byteSize(operand.dtype)));
    for (Bytes &bytes : storage)
      addresses.push_back(bytes.data());
    gather(elements, storage);
    interpret<Math>(few, addresses);
    return {storage.begin() + std::ptrdiff_t(program_.inputs), storage.end()};
  }

  void gather(const std::vector<int64_t> &elements, std::vector<Bytes> &storage) const {
    for (size_t input = 0; input < program_.inputs; ++input) {
      const auto strides = broadcastStrides(program_.inputShapes[input], program_.shape);
      const auto bytes = size_t(byteSize(call_.operands[input].dtype));
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto index = unravel(elements[i], program_.shape);
        int64_t place = 0;
        for (size_t d = 0; d < program_.shape.size(); ++d)
          place += index[d] * strides[d];
        const uint32_t value = memory_.input(input, place);
        std::memcpy(storage[input].data() + i * bytes, &value, bytes);
      }
    }
  }

  static uint32_t valueOf(const Bytes &bytes, DType type, size_t i) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + i * size_t(byteSize(type)), size_t(byteSize(type)));
    return value;
  }

  template <typename Math> static void interpret(const Invocation &few, const std::vector<void *> &addresses) {
    using namespace cuda;
    using Arguments = ElementwiseArguments<mostSteps, mostTensors>;
    const ElementwisePlan plan{Call(few)};
    if (!plan.allFloat)
      throw Error("its program computes in other types than float32, 16-bit floats and bool");
    Arguments arguments = elementwiseArguments<Arguments>(plan);
    setAddresses(arguments, plan, addresses.data());
    using Thread = FloatElementwiseBy<Arguments, mostSlots, Math>;
    for (int64_t first = 0; first < plan.elements; first += Thread::width)
      Thread(arguments, first).run();
  }

  /// Every NaN is one.
  static bool isEqual(DType type, uint32_t a, uint32_t b) {
    return a == b || (std::isnan(floatOf(type, a)) && std::isnan(floatOf(type, b)));
  }

  [[noreturn]] static void refuse(size_t result, int64_t element, float own, float wanted) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "%.9g and not %.9g", double(own), double(wanted));
    throw Error("it makes " + std::string(numbers) + " of element " + std::to_string(element) + " of result " +
                std::to_string(result));
  }

  const Invocation call_;
  const ElementwiseCall program_;
  const DeviceCode code_;
  const ptx::Module module_;
  const uint64_t seed_;
  DrawnMemory memory_;
  std::vector<std::pair<uint32_t, uint32_t>> ran_; ///< blocks [first, end)
};

} // namespace

std::optional<std::string> differenceOf(const Invocation &call, const std::string &isa,
                                        std::span<const uint64_t> alignments, uint64_t seed) {
  try {
    CodeCheck(call, alignments, seed).require(isa);
    return std::nullopt;
  } catch (const Error &error) {
    return error.what();
  }
}

} // namespace ds::kernels
