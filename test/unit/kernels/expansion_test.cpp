// What the rows DS_FUSED say: calls of every fused kernel make what its ops make one after another, by the references.
#include "kernels/ElementwiseProgram.h"
#include "kernels/Expansion.h"
#include "test/unit/kernels/DrawnCalls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ds::kernels::test {

namespace {

constexpr DType F64 = DType::F64;

std::vector<Buffer> run(const DrawnCall &call) {
  std::vector<Buffer> operands = call.operands;
  EXPECT_TRUE(runKernel(cpuReferenceKernels(), invocationOf(call.kernel, operands, call.attributes), operands).ok());
  return operands;
}

/// The ops of a drawn call, run one after another.
class Steps {
public:
  Steps(const DrawnCall &call, const CallLayout &layout, const Expansion &expansion)
      : call_(call), layout_(layout), expansion_(expansion) {
    for (size_t i = 0; i < layout.size(); ++i)
      if (layout[i].isRead())
        values_.emplace(layout[i].name, call.operands[i]);
  }

  void run(const ExpandedOp &step) {
    DrawnCall own{std::string(step.op), {}, {}};
    for (const std::string_view name : step.operands)
      if (const auto value = values_.find(name); value != values_.end())
        own.operands.push_back(value->second);
    const size_t reads = own.operands.size();
    for (const std::string_view name : step.results)
      if (const auto operand = layout_.find(name))
        own.operands.push_back(call_.operands[*operand]);
      else
        own.operands.emplace_back(own.operands[0].type);
    if (const auto opcode = elementwiseNamed(step.op))
      own = program(*opcode, std::move(own.operands));
    else
      for (const auto &[name, value] : call_.attributes)
        if (std::ranges::count(expansion_.attributes, name) == 0)
          own.attributes.emplace(name, value);
    const std::vector<Buffer> done = test::run(own);
    for (size_t r = 0; r < step.results.size(); ++r)
      values_.insert_or_assign(step.results[r], done[reads + r]);
  }

  const Buffer &at(std::string_view name) const { return values_.at(name); }

private:
  /// One instruction of its inputs, in float64.
  static DrawnCall program(ElementwiseOp op, std::vector<Buffer> operands) {
    const auto inputs = int64_t(operands.size()) - 1;
    std::vector<int64_t> instruction = {int64_t(op), int64_t(F64)};
    for (int64_t i = 0; i < elementwiseInstructionWidth - 2; ++i)
      instruction.push_back(i < inputs ? i : -1);
    return {
        "elementwise",
        std::move(operands),
        {{"program", instruction}, {"constants", std::vector<double>{}}, {"results", std::vector<int64_t>{inputs}}}};
  }

  const DrawnCall &call_;
  const CallLayout &layout_;
  const Expansion &expansion_;
  std::map<std::string_view, Buffer> values_;
};

bool isNear(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-10 * (1 + std::abs(a));
}

TEST(Expansion, IsWhatAFusedKernelComputes) {
  std::set<const Expansion *> tried;
  for (const Expansion &expansion : allExpansions())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      const DrawnCall call = drawCall(*findKernel(expansion.kernel), random);
      const Invocation invocation = invocationOf(call.kernel, call.operands, call.attributes);
      if (expansionOf(invocation) != &expansion)
        continue;
      tried.insert(&expansion);
      const CallLayout layout(invocation);
      Steps steps(call, layout, expansion);
      for (const ExpandedOp &step : expansion.ops)
        steps.run(step);
      const std::vector<Buffer> done = run(call);
      for (size_t i = 0; i < layout.size(); ++i)
        for (int64_t e = 0; layout[i].isWritten() && e < elementCount(done[i].type.shape); ++e)
          ASSERT_TRUE(isNear(done[i].at(e), steps.at(layout[i].name).at(e)))
              << expansion.kernel << " " << layout[i].name;
    }
  EXPECT_EQ(tried.size(), allExpansions().size());
}

} // namespace

} // namespace ds::kernels::test
