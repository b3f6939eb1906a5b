// RUN: ds-opt %s --ds-add-adapters="rank=2 targets=^q$" --split-input-file --verify-diagnostics
// RUN: not ds-opt %s --ds-add-adapters="rank=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ds-opt %s --ds-add-adapters="rank=2 targets=(" --split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not ds-opt %s --ds-add-adapters="rank=2 targets=^q$ trainable=q" --split-input-file 2>&1 | FileCheck %s --check-prefix=WHOLE
// ZERO:  error: --lora 0 is no rank; give 1 or more, as in --lora 8
// REGEX: error: --lora-targets '(' is no regular expression: parentheses not balanced
// WHOLE: error: --lora 2: 'q' is trained as a whole by --trainable; leave it out of --lora-targets

// expected-error@below {{--lora-targets '^q$' matches no parameter that products with activations read; there are 'k', 'v'}}
module {
  train.variable parameter @k : tensor<4x4xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @v : tensor<4x4xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %k = train.read @k : tensor<4x4xf32>
    %v = train.read @v : tensor<4x4xf32>
    %y = train.matmul %x, %k : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %z = train.matmul %y, %v : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    return %z : tensor<3x4xf32>
  }
}

// -----

// expected-error@below {{--lora 2: the model has no product of an activation with a parameter that is a matrix}}
module {
  train.variable parameter @q : tensor<4xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %q = train.read @q : tensor<4xf32>
    %y = train.mul %x, %q : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    return %y : tensor<3x4xf32>
  }
}

// -----

// expected-error@below {{--lora 2: 'q' is 4 x 1, of rank 1 at most; leave it out of --lora-targets}}
module {
  train.variable parameter @q : tensor<4x1xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<3x1xf32> {
    %q = train.read @q : tensor<4x1xf32>
    %y = train.matmul %x, %q : (tensor<3x4xf32>, tensor<4x1xf32>) -> tensor<3x1xf32>
    return %y : tensor<3x1xf32>
  }
}

// -----

// expected-error@below {{--lora 2: 'q' is read by decay, too, so its adapter could not be merged; leave it out of --lora-targets}}
module {
  train.variable parameter @q : tensor<4x4xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4x4xf32>) {
    %q = train.read @q : tensor<4x4xf32>
    %y = train.matmul %x, %q : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %d = train.mul %q, %q : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("decay")
    return %y, %d : tensor<3x4xf32>, tensor<4x4xf32>
  }
}

// -----

// expected-error@below {{--lora 2: the model has a parameter 'q.lora_A' already; leave 'q' out of --lora-targets}}
module {
  train.variable parameter @q : tensor<4x4xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @q.lora_A : tensor<4xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %q = train.read @q : tensor<4x4xf32>
    %y = train.matmul %x, %q : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    return %y : tensor<3x4xf32>
  }
}
