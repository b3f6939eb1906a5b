#include "kernels/WidenedCall.h"

#include "kernels/Call.h"

#include <algorithm>
#include <map>
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

} // namespace

bool hasBFloat16(const Invocation &invocation) {
  return std::any_of(invocation.operands.begin(), invocation.operands.end(),
                     [](const TensorType &operand) { return operand.dtype == DType::BF16; });
}

Invocation float32Invocation(const Invocation &invocation, size_t *reads) {
  Invocation copy = invocation;
  if (!hasBFloat16(invocation))
    return copy;
  const size_t count = readsOf(Call(invocation), invocation);
  if (reads)
    *reads = count;
  for (TensorType &operand : copy.operands)
    if (operand.dtype == DType::BF16)
      operand.dtype = DType::F32;
  return copy;
}

} // namespace ds::kernels
