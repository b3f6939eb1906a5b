// RUN: ds-opt %s --ds-partition-tensors --split-input-file --verify-diagnostics

// Tests that a model of which nothing can be cut is refused.
// expected-error @below {{no parameter can be cut over the 2 ranks of axis tensor}}
module {
  dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 2]
  train.variable parameter @w : tensor<3x5xf32> from #train.fill<0.0> {trainable}
  func.func @microbatch(%x: tensor<7x3xf32>) {
    %w = train.read @w : tensor<3x5xf32>
    %y = train.matmul %x, %w : (tensor<7x3xf32>, tensor<3x5xf32>) -> tensor<7x5xf32>
    return
  }
}

// -----

// expected-error @below {{has no @microbatch; ds-differentiate makes it}}
module {
  dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 2]
}
