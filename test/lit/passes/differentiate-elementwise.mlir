// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What the backward of each elementwise op is, with dy the gradient of its result y.

// neg: -dy.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.neg %[[X]]
  %y = train.neg %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.neg %[[DY]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// abs: dy * sign(x).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.abs %[[X]]
  %y = train.abs %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[S:.*]] = train.sign %[[X]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[S]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// sqrt: dy / (2 y).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.sqrt %[[X]]
  %y = train.sqrt %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[TWO:.*]] = train.constant dense<2.000000e+00>
  // CHECK-NEXT: %[[M:.*]] = train.mul %[[TWO]], %[[Y]]
  // CHECK-NEXT: %[[DX:.*]] = train.div %[[DY]], %[[M]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// rsqrt: dy * -y^3 / 2.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.rsqrt %[[X]]
  %y = train.rsqrt %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-DAG: %[[C:.*]] = train.constant dense<-5.000000e-01>
  // CHECK-DAG: %[[Y2:.*]] = train.mul %[[Y]], %[[Y]]
  // CHECK-DAG: %[[Y3:.*]] = train.mul %[[Y]], %[[Y2]]
  // CHECK: %[[M:.*]] = train.mul %[[C]], %[[Y3]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[M]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// reciprocal: -dy * y^2.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.reciprocal %[[X]]
  %y = train.reciprocal %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[Y2:.*]] = train.mul %[[Y]], %[[Y]]
  // CHECK-NEXT: %[[M:.*]] = train.neg %[[Y2]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[M]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// exp: dy * y.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.exp %[[X]]
  %y = train.exp %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[Y]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// log: dy / x.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.log %[[X]]
  %y = train.log %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.div %[[DY]], %[[X]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// log1p: dy / (x + 1).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.log1p %[[X]]
  %y = train.log1p %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[ONE:.*]] = train.constant dense<1.000000e+00>
  // CHECK-NEXT: %[[SUM:.*]] = train.add %[[X]], %[[ONE]]
  // CHECK-NEXT: %[[DX:.*]] = train.div %[[DY]], %[[SUM]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// gelu_tanh: dy times the slope at x.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  %y = train.gelu_tanh %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[SLOPE:.*]] = train.gelu_tanh_slope %[[X]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[SLOPE]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// expm1: dy (y + 1).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.expm1 %[[X]]
  %y = train.expm1 %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[ONE:.*]] = train.constant dense<1.000000e+00>
  // CHECK-NEXT: %[[SUM:.*]] = train.add %[[Y]], %[[ONE]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[SUM]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// erf: dy * 2 / sqrt(pi) * exp(-x^2).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.erf %[[X]]
  %y = train.erf %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-DAG: %[[C:.*]] = train.constant dense<1.12837923>
  // CHECK-DAG: %[[X2:.*]] = train.mul %[[X]], %[[X]]
  // CHECK-DAG: %[[M:.*]] = train.neg %[[X2]]
  // CHECK-DAG: %[[E:.*]] = train.exp %[[M]]
  // CHECK: %[[P:.*]] = train.mul %[[C]], %[[E]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[P]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// tanh: dy * (1 - y^2).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.tanh %[[X]]
  %y = train.tanh %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-DAG: %[[ONE:.*]] = train.constant dense<1.000000e+00>
  // CHECK-DAG: %[[Y2:.*]] = train.mul %[[Y]], %[[Y]]
  // CHECK: %[[M:.*]] = train.sub %[[ONE]], %[[Y2]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[M]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// sigmoid: dy * y * (1 - y).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.sigmoid %[[X]]
  %y = train.sigmoid %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[ONE:.*]] = train.constant dense<1.000000e+00>
  // CHECK-NEXT: %[[M:.*]] = train.sub %[[ONE]], %[[Y]]
  // CHECK-NEXT: %[[P:.*]] = train.mul %[[Y]], %[[M]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[P]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// relu: dy where y > 0, else 0.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.relu %[[X]]
  %y = train.relu %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-DAG: %[[GT:.*]] = train.greater %[[Y]], %{{.*}}
  // CHECK-DAG: %[[ZERO:.*]] = train.constant dense<0.000000e+00>
  // CHECK: %[[DX:.*]] = train.select %[[GT]], %[[DY]], %{{.*}}
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// sin: dy * cos(x).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.sin %[[X]]
  %y = train.sin %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[M:.*]] = train.cos %[[X]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[M]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// cos: -dy * sin(x).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.cos %[[X]]
  %y = train.cos %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[M:.*]] = train.sin %[[X]]
  // CHECK-NEXT: %[[P:.*]] = train.mul %[[DY]], %[[M]]
  // CHECK-NEXT: %[[DX:.*]] = train.neg %[[P]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// sign: its gradient is zero, and what is zero is not accumulated.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.sign %[[X]]
  %y = train.sign %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: return
  return %y : tensor<f32>
}

// -----

// floor: its gradient is zero, and what is zero is not accumulated.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.floor %[[X]]
  %y = train.floor %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: return
  return %y : tensor<f32>
}

// -----

// ceil: its gradient is zero, and what is zero is not accumulated.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Y:.*]] = train.ceil %[[X]]
  %y = train.ceil %x : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: return
  return %y : tensor<f32>
}

// -----

// add: dy to both.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.add %[[X]], %[[Z]]
  %y = train.add %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: train.accumulate %[[DY]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DY]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// sub: dy and -dy.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.sub %[[X]], %[[Z]]
  %y = train.sub %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DZ:.*]] = train.neg %[[DY]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DY]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// mul: dy * z and dy * x.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.mul %[[X]], %[[Z]]
  %y = train.mul %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[Z]]
  // CHECK-NEXT: %[[DZ:.*]] = train.mul %[[DY]], %[[X]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// div: dy / z and -dy * y / z.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.div %[[X]], %[[Z]]
  %y = train.div %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.div %[[DY]], %[[Z]]
  // CHECK-NEXT: %[[Q:.*]] = train.div %[[Y]], %[[Z]]
  // CHECK-NEXT: %[[P:.*]] = train.mul %[[DY]], %[[Q]]
  // CHECK-NEXT: %[[DZ:.*]] = train.neg %[[P]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// pow: dy * z * x^(z - 1), 0 where z is 0; dy * y * ln x, 0 where x is 0 and z >= 0 (as PyTorch has it).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.pow %[[X]], %[[Z]]
  %y = train.pow %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[LOWER:.*]] = train.sub %[[Z]], %{{.*}}
  // CHECK-NEXT: %[[P:.*]] = train.pow %[[X]], %[[LOWER]]
  // CHECK-NEXT: %[[F:.*]] = train.mul %[[Z]], %[[P]]
  // CHECK-NEXT: %[[D:.*]] = train.mul %[[DY]], %[[F]]
  // CHECK: %[[NONE:.*]] = train.equal %[[Z]], %{{.*}}
  // CHECK-NEXT: %[[DX:.*]] = train.select %[[NONE]], %{{.*}}, %[[D]]
  // CHECK: %[[ATZERO:.*]] = train.and
  // CHECK: %[[L:.*]] = train.log %[[X]]
  // CHECK-NEXT: %[[YL:.*]] = train.mul %[[Y]], %[[L]]
  // CHECK-NEXT: %[[D2:.*]] = train.mul %[[DY]], %[[YL]]
  // CHECK-NEXT: %[[DZ:.*]] = train.select %[[ATZERO]], %{{.*}}, %[[D2]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// pow by a constant: dy * 3 * x^2.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  %three = train.constant dense<3.0> : tensor<f32>
  // CHECK: train.pow
  %y = train.pow %x, %three : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[P:.*]] = train.pow %[[X]], %{{.*}}
  // CHECK: %[[F:.*]] = train.mul %{{.*}}, %[[P]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[F]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// A square needs no second pow: dy * 2 * x.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  // CHECK: train.pow
  %y = train.pow %x, %two : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NOT: train.pow
  // CHECK: %[[F:.*]] = train.mul %{{.*}}, %[[X]]
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[DY]], %[[F]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// pow by zero is constant.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  %zero = train.constant dense<0.0> : tensor<f32>
  // CHECK: train.pow
  %y = train.pow %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: return
  return %y : tensor<f32>
}

// -----

// max: to the winner, half to each of equals.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.max %[[X]], %[[Z]]
  %y = train.max %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[WINS:.*]] = train.greater %[[X]], %[[Z]]
  // CHECK: %[[TIE:.*]] = train.equal %[[X]], %[[Z]]
  // CHECK: %[[HALF:.*]] = train.mul %[[DY]], %{{.*}}
  // CHECK: %[[LOST:.*]] = train.select %[[TIE]], %[[HALF]], %[[ZERO:[0-9]+]] :
  // CHECK-NEXT: %[[DX:.*]] = train.select %[[WINS]], %[[DY]], %[[LOST]]
  // CHECK-NEXT: %[[WON:.*]] = train.select %[[TIE]], %[[HALF]], %[[DY]]
  // CHECK-NEXT: %[[DZ:.*]] = train.select %[[WINS]], %[[ZERO]], %[[WON]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// min: to the winner, half to each of equals.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: %[[Y:.*]] = train.min %[[X]], %[[Z]]
  %y = train.min %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[WINS:.*]] = train.less %[[X]], %[[Z]]
  // CHECK: %[[TIE:.*]] = train.equal %[[X]], %[[Z]]
  // CHECK: %[[HALF:.*]] = train.mul %[[DY]], %{{.*}}
  // CHECK: %[[LOST:.*]] = train.select %[[TIE]], %[[HALF]], %[[ZERO:[0-9]+]] :
  // CHECK-NEXT: %[[DX:.*]] = train.select %[[WINS]], %[[DY]], %[[LOST]]
  // CHECK-NEXT: %[[WON:.*]] = train.select %[[TIE]], %[[HALF]], %[[DY]]
  // CHECK-NEXT: %[[DZ:.*]] = train.select %[[WINS]], %[[ZERO]], %[[WON]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// select: dy where it was taken, 0 elsewhere.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward(%c: tensor<i1>) -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<f32>
  // CHECK: train.select
  %y = train.select %c, %x, %z : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[DX:.*]] = train.select %{{.*}}, %[[DY]], %[[ZERO:[0-9]+]] :
  // CHECK-NEXT: %[[DZ:.*]] = train.select %{{.*}}, %[[ZERO]], %[[DY]]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// cast: back to the type of its input.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f64> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f64>
  %y = train.cast %x to f32 : (tensor<f64>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.cast %[[DY]] to f64
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// A broadcast operand sums over its repeats: [2, 1] and [3] of [2, 3].
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x1xf32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x1xf32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<3xf32>
  %p = train.add %x, %z : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %y = train.reduce_sum %p over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[D:.*]] = train.broadcast
  // CHECK-NEXT: %[[R:.*]] = train.reduce_sum %[[D]] over [1]
  // CHECK-NEXT: %[[DX:.*]] = train.reshape %[[R]] to [2, 1]
  // CHECK-NEXT: %[[DZ:.*]] = train.reduce_sum %[[D]] over [0]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}
