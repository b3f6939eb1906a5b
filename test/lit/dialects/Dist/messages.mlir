// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that channels, sends and receives are printed as they are read.
// CHECK: dist.channel @"forward::0-1" axis "pipe" from 0 to 1
// CHECK: dist.send %{{.*}}, %{{.*}} on @"forward::0-1" : tensor<4xf32>, tensor<i64>
// CHECK: dist.receive [@x, @y] on @"forward::0-1"
dist.channel @"forward::0-1" axis "pipe" from 0 to 1
dist.value @x : tensor<4xf32>
dist.value @y : tensor<i64>
dist.fragment @a phase forward stage 0 {
  %0 = train.constant dense<0.0> : tensor<4xf32>
  %1 = train.constant dense<0> : tensor<i64>
  dist.send %0, %1 on @"forward::0-1" : tensor<4xf32>, tensor<i64>
}
dist.fragment @b phase forward stage 0 {
  dist.receive [@x, @y] on @"forward::0-1"
}
