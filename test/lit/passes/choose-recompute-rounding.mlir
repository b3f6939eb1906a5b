// RUN: ds-opt %s --ds-lower-precision=to=bf16 --ds-differentiate --cse --ds-widen-sums --ds-choose-recompute=full --ds-recompute | FileCheck %s

// Tests that a layer begins with the rounding of what crosses into it: the backward of the third of four layers rounds the sum in f32 and
// normalizes it again, so of the forward it reads the sum alone.
// CHECK-LABEL: func.func @microbatch
// CHECK: train.add
// CHECK: %[[SUM:.*]] = train.add {{.*}}) -> tensor<512x64xf32>
// CHECK: train.loss_gradient
// CHECK: %[[AGAIN:.*]] = train.cast %[[SUM]] to bf16 {train.recomputed}
// CHECK: train.layer_norm %[[AGAIN]], {{.*}} {train.recomputed}
// CHECK: train.layer_norm_grad %{{.*}}, %[[AGAIN]],
train.variable parameter @a : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @c : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @d : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @scale : tensor<64xf32> from #train.fill<1.0> {trainable}
train.variable parameter @shift : tensor<64xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<512x64xf32> {train.input = "x"}) -> tensor<f32> {
  %scale = train.read @scale : tensor<64xf32>
  %shift = train.read @shift : tensor<64xf32>
  %a = train.read @a : tensor<64x64xf32> loc("a")
  %an, %am, %ar = train.layer_norm %x, %scale, %shift epsilon 1.0e-5 : (tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<512x64xf32>, tensor<512xf32>, tensor<512xf32>) loc("a.norm")
  %ap = train.matmul %an, %a : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc("a.product")
  %as = train.add %x, %ap : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> loc("a.sum")
  %b = train.read @b : tensor<64x64xf32> loc("b")
  %bn, %bm, %br = train.layer_norm %as, %scale, %shift epsilon 1.0e-5 : (tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<512x64xf32>, tensor<512xf32>, tensor<512xf32>) loc("b.norm")
  %bp = train.matmul %bn, %b : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc("b.product")
  %bs = train.add %as, %bp : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> loc("b.sum")
  %c = train.read @c : tensor<64x64xf32> loc("c")
  %cn, %cm, %cr = train.layer_norm %bs, %scale, %shift epsilon 1.0e-5 : (tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<512x64xf32>, tensor<512xf32>, tensor<512xf32>) loc("c.norm")
  %cp = train.matmul %cn, %c : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc("c.product")
  %cs = train.add %bs, %cp : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> loc("c.sum")
  %d = train.read @d : tensor<64x64xf32> loc("d")
  %dn, %dm, %dr = train.layer_norm %cs, %scale, %shift epsilon 1.0e-5 : (tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<512x64xf32>, tensor<512xf32>, tensor<512xf32>) loc("d.norm")
  %dp = train.matmul %dn, %d : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc("d.product")
  %ds = train.add %cs, %dp : (tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<512x64xf32> loc("d.sum")
  %loss = train.reduce_sum %ds over [0, 1] : (tensor<512x64xf32>) -> tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
