#include "compiler/codegen/ElementwiseCode.h"

#include "compiler/codegen/ElementwiseSteps.h"
#include "compiler/codegen/Lanes.h"
#include "kernels/elementwise/elementwise_cuda_plan.h"

#include "llvm/IR/CallingConv.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

namespace ds::codegen {

using kernels::ElementwiseCall;
using kernels::ElementwiseInstruction;
using kernels::cuda::ElementwiseInput;
using kernels::cuda::ElementwisePlan;
using kernels::cuda::Spread;

namespace {

/// Values that a thread may keep at once, of the 255 registers of which ptxas needs some for addresses and functions.
constexpr size_t mostLive = 96;
/// Steps times elements of a thread: what is longer is worse than the interpreter, and long to compile.
constexpr size_t mostSteps = 4096;

/// Most values alive at once for one element, where an input is read at its first use and results are kept to the end.
size_t peakOfLive(const ElementwiseCall &call) {
  const size_t steps = call.program.size();
  std::vector<size_t> first(call.types.size(), steps), last(call.types.size(), 0);
  for (size_t k = 0; k < steps; ++k) {
    first[call.inputs + k] = k;
    for (int source : call.program[k].sources)
      if (source >= 0) {
        first[size_t(source)] = std::min(first[size_t(source)], k);
        last[size_t(source)] = k;
      }
  }
  for (int result : call.results)
    last[size_t(result)] = steps;
  size_t peak = 0;
  for (size_t k = 0; k <= steps; ++k) {
    size_t live = 0;
    for (size_t reg = 0; reg < call.types.size(); ++reg) {
      const bool constant =
          reg >= call.inputs && call.program[reg - call.inputs].op == kernels::ElementwiseOp::Constant;
      live += !constant && first[reg] <= k && last[reg] >= k;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

/// Elements of a group: 16 bytes of the narrowest tensor that is read or written whole, fewer where values are many.
/// 0: even one element has too many.
int64_t widthOf(const ElementwiseCall &call, const ElementwisePlan &plan) {
  int64_t narrowest = 4;
  for (const ElementwiseInput &input : plan.inputs)
    if (input.spread == Spread::Full)
      narrowest = std::min(narrowest, int64_t(byteSize(input.type)));
  for (const auto &result : plan.results)
    narrowest = std::min(narrowest, int64_t(byteSize(result.type)));
  const size_t peak = peakOfLive(call);
  for (int64_t width = narrowest < 4 ? 8 : 4; width > 0; width /= 2)
    if (peak * size_t(width) <= mostLive && call.program.size() * size_t(width) <= mostSteps)
      return width;
  return 0;
}

class Writer {
public:
  Writer(const ElementwiseCall &call, const ElementwisePlan &plan, std::span<const uint64_t> alignments,
         const std::string &name, Target target, llvm::Module &module)
      : call_(call), plan_(plan), alignments_(alignments), width_(widthOf(call, plan)), target_(target),
        b_(module.getContext()), lanes_(b_, target) {
    const size_t before = target == Target::Host ? 2 : 0;
    std::vector<llvm::Type *> types(before, b_.getInt32Ty());
    types.resize(before + plan.inputs.size() + plan.results.size(), b_.getInt64Ty());
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                       llvm::Function::ExternalLinkage, name, module);
    if (target == Target::Gpu) {
      function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
      function_->addFnAttr("nvvm.maxntid", std::to_string(blockThreads));
    }
    // Numbers of elements and of threads, and offsets in elements, fit the type.
    index_ = plan.elements < int64_t(1) << 31 ? b_.getInt32Ty() : b_.getInt64Ty();
  }

  bool isPossible() const { return width_ > 0; }

  /// Writes the function; how many blocks it is for.
  int64_t run() {
    const int64_t groups = plan_.elements / width_, single = plan_.elements % width_;
    b_.SetInsertPoint(block("entry"));
    llvm::Value *thread = threadNumber();
    llvm::BasicBlock *group = block("group"), *rest = block("rest"), *end = block("end");
    b_.CreateCondBr(b_.CreateICmpULT(thread, number(groups)), group, rest);
    if (groups > 0) {
      b_.SetInsertPoint(group);
      writeElements(b_.CreateMul(thread, number(width_), "", /*HasNUW=*/true), width_);
      b_.CreateBr(end);
    } else {
      b_.SetInsertPoint(group);
      b_.CreateBr(end);
    }
    b_.SetInsertPoint(rest);
    if (single > 0) {
      llvm::BasicBlock *one = block("one");
      b_.CreateCondBr(b_.CreateICmpULT(thread, number(groups + single)), one, end);
      b_.SetInsertPoint(one);
      writeElements(b_.CreateAdd(thread, number(groups * (width_ - 1))), 1);
    }
    b_.CreateBr(end);
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
    return (groups + single + blockThreads - 1) / blockThreads;
  }

private:
  const ElementwiseCall &call_;
  const ElementwisePlan &plan_;
  std::span<const uint64_t> alignments_;
  const int64_t width_;
  const Target target_;
  Builder b_;
  Lanes lanes_;
  llvm::Function *function_;
  llvm::IntegerType *index_;

  llvm::BasicBlock *block(const char *name) { return llvm::BasicBlock::Create(b_.getContext(), name, function_); }
  llvm::Value *number(int64_t value) { return llvm::ConstantInt::get(index_, uint64_t(value)); }
  llvm::Value *parameter(size_t operand) {
    return function_->getArg(unsigned(operand + (target_ == Target::Host ? 2 : 0)));
  }

  llvm::Value *threadNumber() {
    const auto of = [&](unsigned host, llvm::Intrinsic::ID id) -> llvm::Value * {
      return target_ == Target::Host ? static_cast<llvm::Value *>(function_->getArg(host)) : b_.CreateIntrinsic(id, {});
    };
    llvm::Value *block = of(0, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    llvm::Value *thread = of(1, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    return b_.CreateAdd(b_.CreateMul(b_.CreateZExt(block, index_), number(blockThreads)),
                        b_.CreateZExt(thread, index_));
  }

  /// `count` elements from `first` on, which is a multiple of `count`.
  void writeElements(llvm::Value *first, int64_t count) {
    ElementwiseSteps steps(call_, b_, lanes_, size_t(count), [&](size_t input) { return load(input, first, count); });
    steps.run();
    std::vector<LaneValues> values;
    for (size_t r = 0; r < call_.results.size(); ++r) // inputs that are results are read here, before what follows
      values.push_back(steps.value(size_t(call_.results[r])));
    for (size_t r = 0; r < call_.results.size(); ++r) {
      const size_t operand = plan_.inputs.size() + r;
      const DType type = plan_.results[r].type;
      lanes_.store(address(operand, first, type), type, values[r], alignmentOf(operand, {count}, type));
    }
  }

  llvm::Value *address(size_t operand, llvm::Value *element, DType type) {
    llvm::Value *bytes = b_.CreateMul(b_.CreateZExt(element, b_.getInt64Ty()), b_.getInt64(uint64_t(byteSize(type))),
                                      "", /*HasNUW=*/true);
    return lanes_.pointer(b_.CreateAdd(parameter(operand), bytes));
  }

  /// Of an operand's address that multiples of these numbers of elements were added to.
  uint64_t alignmentOf(size_t operand, std::initializer_list<int64_t> steps, DType type) const {
    uint64_t result = alignments_[operand];
    for (int64_t step : steps)
      result = std::gcd(result, uint64_t(step) * uint64_t(byteSize(type)));
    return result;
  }

  LaneValues load(size_t index, llvm::Value *first, int64_t count) {
    const ElementwiseInput &input = plan_.inputs[index];
    const DType type = input.type;
    if (input.spread == Spread::Full)
      return lanes_.load(address(index, first, type), type, size_t(count), alignmentOf(index, {count}, type));
    if (input.spread == Spread::Scalar)
      return spread(index, number(0), type, count);
    const bool inRow = plan_.sizes.back() % count == 0; // a group differs in the last dimension alone
    const int64_t stride = input.strides[plan_.sizes.size() - 1];
    if (inRow && stride == 0)
      return spread(index, offset(input, first), type, count);
    if (inRow && stride == 1)
      return lanes_.load(address(index, offset(input, first), type), type, size_t(count),
                         rowAlignment(index, input, count));
    LaneValues values;
    for (int64_t k = 0; k < count; ++k)
      values.push_back(
          lanes_.load(address(index, offset(input, b_.CreateAdd(first, number(k))), type), type, 1, byteSize(type))[0]);
    return values;
  }

  LaneValues spread(size_t index, llvm::Value *element, DType type, int64_t count) {
    const LaneValues one = lanes_.load(address(index, element, type), type, 1, byteSize(type));
    return LaneValues(size_t(count), one[0]);
  }

  uint64_t rowAlignment(size_t index, const ElementwiseInput &input, int64_t count) const {
    uint64_t result = alignmentOf(index, {count}, input.type);
    for (size_t d = 0; d + 1 < plan_.sizes.size(); ++d)
      if (input.strides[d] != 0)
        result = std::gcd(result, uint64_t(input.strides[d]) * uint64_t(byteSize(input.type)));
    return result;
  }

  /// Where a strided input has its value for an element.
  llvm::Value *offset(const ElementwiseInput &input, llvm::Value *element) {
    llvm::Value *result = nullptr, *rest = element;
    const auto add = [&](llvm::Value *at, int64_t stride) {
      if (stride == 0)
        return;
      llvm::Value *part = b_.CreateMul(at, number(stride));
      result = result ? b_.CreateAdd(result, part) : part;
    };
    for (size_t d = plan_.sizes.size() - 1; d > 0; --d) {
      llvm::Value *size = number(plan_.sizes[d]);
      if (input.strides[d] != 0)
        add(b_.CreateURem(rest, size), input.strides[d]);
      rest = b_.CreateUDiv(rest, size);
    }
    add(rest, input.strides[0]);
    return result ? result : number(0);
  }
};

} // namespace

uint64_t usefulAlignment(const kernels::TensorType &operand, uint64_t alignment) {
  constexpr uint64_t most = 16;
  if (elementCount(operand.shape) <= 1)
    return uint64_t(byteSize(operand.dtype));
  return alignment == 0 ? most : std::min(most, alignment & (~alignment + 1)); // its greatest power of two
}

ElementwiseCode elementwiseCode(const kernels::Invocation &invocation, std::span<const uint64_t> alignments,
                                const std::string &name, Target target, llvm::LLVMContext &context) {
  const kernels::Call checked(invocation);
  const ElementwiseCall call(checked);
  ElementwiseCode code;
  if (call.elements == 0 || !std::ranges::all_of(call.types, [](DType type) {
        return type == DType::F32 || isNarrowFloat(type) || type == DType::Bool;
      }))
    return code;
  auto module = std::make_unique<llvm::Module>(name, context);
  const ElementwisePlan plan(checked);
  std::vector<uint64_t> useful;
  for (size_t i = 0; i < alignments.size(); ++i)
    useful.push_back(usefulAlignment(invocation.operands[i], alignments[i]));
  Writer writer(call, plan, useful, name, target, *module);
  if (!writer.isPossible())
    return code;
  code.blocks = writer.run();
  code.module = std::move(module);
  return code;
}

} // namespace ds::codegen
