// RUN: ds-opt %s --ds-infer-input-limits | FileCheck %s

// Tests that an input that is moved about and looked up is limited by the table, a label by the classes, and one that is
// both by the smaller; gradients do not count as readers, nor does who compares.
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME:  (%arg0: tensor<2x3xi64> {train.limit = 5 : i64},
// CHECK-SAME:   %arg1: tensor<4xi64> {train.ignored = -100 : i64, train.limit = 7 : i64},
// CHECK-SAME:   %arg2: tensor<4xi32> {train.ignored = -1 : i64, train.limit = 5 : i64},
func.func @microbatch(%ids: tensor<2x3xi64>, %labels: tensor<4xi64>, %both: tensor<4xi32>, %table: tensor<5x2xf32>,
                      %logits: tensor<4x7xf32>, %g: tensor<6x2xf32>) {
  %flat = train.reshape %ids to [6] : (tensor<2x3xi64>) -> tensor<6xi64>
  %0 = train.gather %table, %flat along 0 : (tensor<5x2xf32>, tensor<6xi64>) -> tensor<6x2xf32>
  %1 = train.gather_grad %g, %flat along 0 into [5, 2] : (tensor<6x2xf32>, tensor<6xi64>) -> tensor<5x2xf32>
  %loss, %lse = train.cross_entropy mean %logits, %labels ignore -100 : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  %ignored = train.constant dense<-100> : tensor<i64>
  %isIgnored = train.equal %labels, %ignored : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
  %2 = train.gather %table, %both along 0 : (tensor<5x2xf32>, tensor<4xi32>) -> tensor<4x2xf32>
  %loss2, %lse2 = train.cross_entropy mean %logits, %both ignore -1 : (tensor<4x7xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}
