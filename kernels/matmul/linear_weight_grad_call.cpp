#include "kernels/matmul/linear_weight_grad_call.h"

namespace ds::kernels {

LinearWeightGradCall::LinearWeightGradCall(const Call &call)
    : transposed(call.flag("transposed")), rows(call.shape(dy)[0]), columns(call.shape(dy)[1]),
      workspace(call.workspace()) {
  const int64_t inputs = call.shape(x)[1];
  call.expectShape(dw, transposed ? Shape{columns, inputs} : Shape{inputs, columns});
  call.require(call.dtype(dw) == call.dtype(db), "dw and db must have one type");
  const auto operand = [&](size_t index) { return TensorType{call.dtype(index), call.shape(index)}; };
  product = {"matmul",
             {operand(a()), operand(b()), operand(dw)},
             {{"trans_a", int64_t(1)},
              {"trans_b", int64_t(0)},
              {"bias", int64_t(0)},
              {"pieces", call.integer("pieces")},
              {"tf32", int64_t(call.flag("tf32"))}},
             {},
             call.algorithm()};
  sums = {"reduce_sum", {operand(dy), operand(db)}, {{"axes", std::vector<int64_t>{0}}}};
  if (workspace.bytes > 0)
    for (Invocation *part : {&product, &sums})
      part->operands.push_back({DType::U8, {workspace.bytes}});
}

} // namespace ds::kernels
