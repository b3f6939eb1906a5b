// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @integer() {
  // expected-error @+1 {{op result #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values, but got 'tensor<i64>'}}
  %0 = train.loss_gradient 1.0 : tensor<i64>
  return
}
