// Kernels for bfloat16, which on a CPU are for checking plans and other devices' kernels: right before fast. Arithmetic
// in bfloat16 is float32's with one rounding at the end (KernelSignatures.h), so the float32 kernel is run on copies.
#include "kernels/cpu/Widened.h"

#include "kernels/BFloat16.h"
#include "kernels/calls/Call.h"

#include <algorithm>
#include <map>
#include <new>
#include <string_view>

namespace ds::kernels {

namespace {

/// Operand types of every form of a kernel, a letter each: T, S and G of KernelSignatures.h, '*' T or bool, '.'
/// anything else. Written operands stand behind the bar.
const std::multimap<std::string_view, std::string_view> &signatures() {
  static const std::multimap<std::string_view, std::string_view> table = {{"matmul", "TT|G"},
                                                                          {"matmul", "TTT|G"},
                                                                          {"matmul gelu_tanh", "TT|TT"},
                                                                          {"matmul gelu_tanh", "TTT|TT"},
                                                                          {"matmul gelu_tanh_grad", "TTT|T"},
                                                                          {"matmul gelu_tanh_grad", "TTT|TG"},
                                                                          {"attention", "TTT|TS"},
                                                                          {"attention", "TTT*|TS"},
                                                                          {"attention_grad", "TTTTTS|TTT"},
                                                                          {"attention_grad", "TTTT*TS|TTT"},
                                                                          {"reduce_sum", "T|G"},
                                                                          {"reduce_mean", "T|G"},
                                                                          {"reduce_max", "T|T"},
                                                                          {"softmax", "T|T"},
                                                                          {"softmax_grad", "TT|T"},
                                                                          {"log_softmax", "T|T"},
                                                                          {"log_softmax_grad", "TT|T"},
                                                                          {"layer_norm", "TSS|TSS"},
                                                                          {"layer_norm_grad", "TTSSS|TSS."},
                                                                          {"rms_norm", "TS|TS"},
                                                                          {"rms_norm_grad", "TTSS|TS."},
                                                                          {"batch_norm", "TSS|TSSS"},
                                                                          {"batch_norm_grad", "TTSSS|TSS"},
                                                                          {"conv", "TT|T."},
                                                                          {"conv", "TTT|T."},
                                                                          {"conv_input_grad", "TT|T."},
                                                                          {"conv_weight_grad", "TT|G."},
                                                                          {"max_pool", "T|T"},
                                                                          {"average_pool", "T|T"},
                                                                          {"max_pool_grad", "TT|T"},
                                                                          {"average_pool_grad", "T|T"},
                                                                          {"gather_grad", "T.|G"},
                                                                          {"scatter_elements", "T.T|T"},
                                                                          {"arg_max", "T|."},
                                                                          {"top_k", "T|T."},
                                                                          {"cumsum", "T|T"},
                                                                          {"cross_entropy", "T.|SS"},
                                                                          {"cross_entropy_grad", "T.SS|T"},
                                                                          {"dropout", "T|T"}};
  return table;
}

bool fits(char letter, DType dtype) {
  switch (letter) {
  case 'T':
    return dtype == DType::BF16;
  case 'S':
    return dtype == DType::F32;
  case 'G':
    return dtype == DType::BF16 || dtype == DType::F32;
  case '*':
    return dtype == DType::BF16 || dtype == DType::Bool;
  default:
    return !isFloat(dtype);
  }
}

/// The number of operands that are only read, or a failure that names the operand that fits no form of the kernel.
size_t readsOf(const Call &call, const Invocation &invocation) {
  std::string form = invocation.kernel;
  if (call.has("epilogue") && !call.text("epilogue").empty())
    form += " " + call.text("epilogue");
  const auto [begin, end] = signatures().equal_range(form);
  call.require(begin != end, "is not for bfloat16");
  std::string mistake = "has " + std::to_string(call.operandCount()) + " operands, which no form of it has";
  for (auto it = begin; it != end; ++it) {
    std::string letters(it->second);
    const size_t reads = letters.find('|');
    letters.erase(reads, 1);
    if (letters.size() != call.operandCount())
      continue;
    size_t i = 0;
    while (i < letters.size() && fits(letters[i], call.dtype(i)))
      ++i;
    if (i == letters.size())
      return reads;
    mistake = "operand " + std::to_string(i) + " cannot be " + std::string(name(call.dtype(i))) +
              " beside operands of bfloat16";
  }
  call.fail(mistake);
}

constexpr int64_t grain = 1 << 15;
constexpr int64_t alignment = 64 / int64_t(sizeof(float));

/// Float32 copies of one call's operands. One area a thread, as large as its largest call: kernels of one rank follow
/// each other on one thread.
float *scratch(int64_t floats) {
  static thread_local std::vector<float> area;
  if (int64_t(area.size()) < floats)
    area.resize(size_t(floats));
  return area.data();
}

class Widened : public Kernel {
public:
  Widened(const Call &call, size_t reads, std::unique_ptr<Kernel> wide) : wide_(std::move(wide)) {
    for (size_t i = 0; i < call.operandCount(); ++i)
      if (call.dtype(i) == DType::BF16) {
        copies_.push_back({i, call.elements(i), floats_, i >= reads});
        floats_ += piecesOf(call.elements(i), alignment) * alignment;
      }
    addresses_.resize(call.operandCount());
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    float *area = nullptr;
    try {
      area = scratch(floats_);
    } catch (const std::bad_alloc &) {
      return Status::failure("there is no memory for %lld float32 copies of a bfloat16 kernel's operands",
                             static_cast<long long>(floats_));
    }
    std::copy(operands.begin(), operands.end(), addresses_.begin());
    for (const Copy &copy : copies_) {
      addresses_[copy.operand] = area + copy.offset;
      if (!copy.written)
        convert(context, static_cast<const BFloat16 *>(operands[copy.operand]), area + copy.offset, copy.elements);
    }
    if (Status status = wide_->execute(context, addresses_); !status.ok())
      return status;
    for (const Copy &copy : copies_)
      if (copy.written)
        convert(context, area + copy.offset, static_cast<BFloat16 *>(operands[copy.operand]), copy.elements);
    return Status::success();
  }

private:
  struct Copy {
    size_t operand;
    int64_t elements, offset;
    bool written;
  };

  template <typename From, typename To>
  static void convert(const CallContext &context, const From *from, To *to, int64_t count) noexcept {
    parallelFor(context, piecesOf(count, grain), [&](int64_t piece, int) {
      for (int64_t i = piece * grain, end = std::min(i + grain, count); i < end; ++i)
        to[i] = To(float(from[i]));
    });
  }

  std::unique_ptr<Kernel> wide_;
  std::vector<Copy> copies_;
  std::vector<void *> addresses_;
  int64_t floats_ = 0;
};

} // namespace

bool hasBFloat16(const Invocation &invocation) {
  return std::any_of(invocation.operands.begin(), invocation.operands.end(),
                     [](const TensorType &operand) { return operand.dtype == DType::BF16; });
}

std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide) {
  const Call call(invocation);
  const size_t reads = readsOf(call, invocation);
  Invocation copy = invocation;
  for (TensorType &operand : copy.operands)
    if (operand.dtype == DType::BF16)
      operand.dtype = DType::F32;
  return std::make_unique<Widened>(call, reads, wide(copy, options));
}

} // namespace ds::kernels
