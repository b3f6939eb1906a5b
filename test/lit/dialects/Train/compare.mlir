// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that comparisons broadcast and yield i1.
// CHECK-LABEL: func.func @compare
func.func @compare(%a: tensor<2x1xf32>, %b: tensor<3xf32>) -> tensor<2x3xi1> {
  // CHECK: train.equal %{{.*}}, %{{.*}} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %0 = train.equal %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK-NEXT: train.less
  %1 = train.less %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK-NEXT: train.less_equal
  %2 = train.less_equal %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK-NEXT: train.greater
  %3 = train.greater %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK-NEXT: train.greater_equal
  %4 = train.greater_equal %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // Booleans compare, too.
  // CHECK-NEXT: train.equal %{{.*}} : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  %5 = train.equal %0, %1 : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  return %5 : tensor<2x3xi1>
}
