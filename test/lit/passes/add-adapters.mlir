// RUN: ds-opt %s --ds-add-adapters="rank=2" --split-input-file | FileCheck %s
// RUN: ds-opt %s --ds-add-adapters="rank=2" --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=NOTE

// Tests a weight on the right, inputs first: x W + (x A^T) B^T; its bias stays with the product.
// CHECK-LABEL: module @right
// CHECK:       train.variable parameter @w : tensor<8x4xf32> from #train.fill<1.000000e+00 : f64>{{$}}
// CHECK-NEXT:  train.variable parameter @w.lora_A : tensor<2x8xf32> from #train.random<"uniform", 0.000000e+00 : f64, 0.35355339059327373 : f64> {persistent, trainable}
// CHECK-NEXT:  train.variable parameter @w.lora_B : tensor<4x2xf32> from #train.fill<0.000000e+00 : f64> {persistent, trainable}
// CHECK-NEXT:  train.variable parameter @b : tensor<4xf32> from #train.fill<0.000000e+00 : f64>{{$}}
// CHECK:       %[[Y:.*]] = train.matmul %arg0, %{{.*}} bias %{{.*}} :
// CHECK-NEXT:  %[[A:.*]] = train.read @w.lora_A
// CHECK-NEXT:  %[[B:.*]] = train.read @w.lora_B
// CHECK-NEXT:  %[[DOWN:.*]] = train.matmul %arg0, %[[A]] transposed : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:  %[[UP:.*]] = train.matmul %[[DOWN]], %[[B]] transposed : (tensor<3x2xf32>, tensor<4x2xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:  %[[SUM:.*]] = train.add %[[Y]], %[[UP]]
// CHECK-NEXT:  return %[[SUM]]
// NOTE:        remark: --lora 2: 1 weight has an adapter: 'w'; all else is frozen{{$}}
module @right {
  train.variable parameter @w : tensor<8x4xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @b : tensor<4xf32> from #train.fill<0.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {
    %w = train.read @w : tensor<8x4xf32>
    %b = train.read @b : tensor<4xf32>
    %y = train.matmul %x, %w bias %b : (tensor<3x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    return %y : tensor<3x4xf32>
  }
}

// -----

// Tests that a weight of several products has one adapter, whichever way each reads it, through a transpose, too; and
// that products add it in the type in which they read the weight.
// CHECK-LABEL: module @shared
// CHECK:       @w.lora_A : tensor<2x8xf32>
// CHECK:       @w.lora_B : tensor<4x2xf32>
// CHECK-NOT:   train.variable
// CHECK:       train.matmul %arg0, %{{.*}} transposed : (tensor<3x8xf32>, tensor<4x8xf32>)
// CHECK:       %[[DOWN:.*]] = train.matmul %arg0, %{{.*}} transposed : (tensor<3x8xf32>, tensor<2x8xf32>)
// CHECK-NEXT:  train.matmul %[[DOWN]], %{{.*}} transposed : (tensor<3x2xf32>, tensor<4x2xf32>)
// CHECK:       %[[A16:.*]] = train.cast %{{.*}} to bf16 : (tensor<2x8xf32>)
// CHECK:       %[[B16:.*]] = train.cast %{{.*}} to bf16 : (tensor<4x2xf32>)
// CHECK-DAG:   %[[BACK:.*]] = train.matmul %arg1, %[[B16]] : (tensor<3x4xbf16>, tensor<4x2xbf16>)
// CHECK-DAG:   train.matmul %[[BACK]], %[[A16]] : (tensor<3x2xbf16>, tensor<2x8xbf16>) -> tensor<3x8xbf16>
module @shared {
  train.variable parameter @w : tensor<4x8xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x8xf32>, %z: tensor<3x4xbf16>) -> (tensor<3x4xf32>, tensor<3x8xbf16>) {
    %w = train.read @w : tensor<4x8xf32>
    %y = train.matmul %x, %w transposed : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    %t = train.transpose %w by [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %c = train.cast %t to bf16 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
    %v = train.matmul %z, %c transposed : (tensor<3x4xbf16>, tensor<8x4xbf16>) -> tensor<3x8xbf16>
    return %y, %v : tensor<3x4xf32>, tensor<3x8xbf16>
  }
}

// -----

// Tests a weight on the left, B (A x), and what has none by default: an embedding that is the head, too, a matrix
// smaller than the rank, and a product of two parameters, whose result no activation meets as a weight.
// CHECK-LABEL: module @left
// CHECK:       @w.lora_A : tensor<2x3xf32>
// CHECK:       @w.lora_B : tensor<4x2xf32>
// CHECK-NOT:   lora
// CHECK:       func.func
// CHECK:       %[[DOWN:.*]] = train.matmul %{{.*}}, %arg0 : (tensor<2x3xf32>, tensor<3x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:  train.matmul %{{.*}}, %[[DOWN]] : (tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
// NOTE:        remark: --lora 2: 1 weight has an adapter: 'w'; all else is frozen; without one: 'table' is read by lookup, too, so its adapter could not be merged; 'thin' is 6 x 1, of rank 1 at most
module @left {
  train.variable parameter @w : tensor<4x3xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @table : tensor<9x6xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @thin : tensor<6x1xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @u : tensor<6x5xf32> from #train.fill<1.0 : f64> {trainable}
  train.variable parameter @v : tensor<5x6xf32> from #train.fill<1.0 : f64> {trainable}
  func.func @forward(%x: tensor<3x6xf32>, %ids: tensor<2xi64>) -> (tensor<4x9xf32>, tensor<4x1xf32>, tensor<2x6xf32>, tensor<6x6xf32>) {
    %w = train.read @w : tensor<4x3xf32>
    %h = train.matmul %w, %x : (tensor<4x3xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %table = train.read @table : tensor<9x6xf32>
    %logits = train.matmul %h, %table transposed : (tensor<4x6xf32>, tensor<9x6xf32>) -> tensor<4x9xf32>
    %rows = train.gather %table, %ids along 0 : (tensor<9x6xf32>, tensor<2xi64>) -> tensor<2x6xf32> loc("lookup")
    %thin = train.read @thin : tensor<6x1xf32>
    %one = train.matmul %h, %thin : (tensor<4x6xf32>, tensor<6x1xf32>) -> tensor<4x1xf32>
    %u = train.read @u : tensor<6x5xf32>
    %v = train.read @v : tensor<5x6xf32>
    %uv = train.matmul %u, %v : (tensor<6x5xf32>, tensor<5x6xf32>) -> tensor<6x6xf32>
    return %logits, %one, %rows, %uv : tensor<4x9xf32>, tensor<4x1xf32>, tensor<2x6xf32>, tensor<6x6xf32>
  }
}
