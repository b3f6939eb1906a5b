// RUN: ds-opt %s --split-input-file --ds-offload-activations=least-bytes=64 | FileCheck %s

// Tests that what a forward keeps for the backward leaves behind what computes it, and comes back when the tensor before it is
// first used. What is small, what another phase loads and inputs stay.
// CHECK-DAG:   dist.value @a : tensor<64xf32> in host
// CHECK-DAG:   dist.value @b : tensor<64xf32> in host
// CHECK-DAG:   dist.value @small : tensor<4xf32>{{$}}
// CHECK-DAG:   dist.value @shown : tensor<64xf32>{{$}}
// CHECK-DAG:   dist.value @x : tensor<64xf32> input "x"{{$}}
// CHECK-LABEL: dist.fragment @forward
// CHECK:         %[[A:.*]] = train.exp
// CHECK-NEXT:    %[[THERE:.*]] = dist.transfer %[[A]] from device to host
// CHECK-NEXT:    dist.store %[[THERE]] as @a
// CHECK-NEXT:    %[[B:.*]] = train.exp %[[A]]
// CHECK-NEXT:    %[[OTHER:.*]] = dist.transfer %[[B]] from device to host
// CHECK-NEXT:    dist.store %[[OTHER]] as @b
// CHECK:         dist.store %[[B]] as @shown
// CHECK-LABEL: dist.fragment @backward
// CHECK-NEXT:    %[[HB:.*]] = dist.load @b
// CHECK-NEXT:    %[[FIRST:.*]] = dist.transfer %[[HB]] from host to device
// CHECK-NEXT:    train.constant
// CHECK-NEXT:    dist.load @small
// CHECK-NEXT:    %[[HA:.*]] = dist.load @a
// CHECK-NEXT:    %[[SECOND:.*]] = dist.transfer %[[HA]] from host to device
// CHECK-NEXT:    %[[D:.*]] = train.mul %{{.*}}, %[[FIRST]]
// CHECK-NEXT:    train.mul %[[D]], %[[SECOND]]
dist.mesh @mesh ["data"] [1]
dist.value @x : tensor<64xf32> input "x"
dist.value @a : tensor<64xf32>
dist.value @b : tensor<64xf32>
dist.value @small : tensor<4xf32>
dist.value @shown : tensor<64xf32>
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<64xf32>
  %a = train.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %b = train.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  %s = train.constant dense<1.0> : tensor<4xf32>
  dist.store %s as @small : tensor<4xf32>
  dist.store %a as @a : tensor<64xf32>
  dist.store %b as @b : tensor<64xf32>
  dist.store %b as @shown : tensor<64xf32>
}
dist.fragment @backward phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<64xf32>
  %a = dist.load @a : tensor<64xf32>
  %b = dist.load @b : tensor<64xf32>
  %s = dist.load @small : tensor<4xf32>
  %d = train.mul %g, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %e = train.mul %d, %a : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
}
dist.fragment @metric phase metric pipe 0 {
  %b = dist.load @shown : tensor<64xf32>
}
