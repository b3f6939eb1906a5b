// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.value @x : tensor<4xf32> input "x"
dist.value @y : tensor<4xf32>

// Tests that a fragment feeds, takes and keeps, and that an empty one has a body.
// CHECK-LABEL: dist.fragment @feed phase feed stage 0 {
// CHECK-NEXT:    dist.feed @x
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
}
// CHECK-LABEL: dist.fragment @forward phase forward stage 0 {
dist.fragment @forward phase forward stage 0 {
  // CHECK: %[[X:.*]] = dist.load @x : tensor<4xf32>
  %x = dist.load @x : tensor<4xf32>
  // CHECK: %[[Y:.*]] = train.exp %[[X]]
  %y = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: dist.store %[[Y]] as @y : tensor<4xf32>
  dist.store %y as @y : tensor<4xf32>
}
// Tests an update, which is of a coordinate of axis pipe, and what is received ahead of it.
// CHECK-LABEL: dist.fragment @"update::1" phase update pipe 1 {
dist.fragment @"update::1" phase update pipe 1 {
}
// CHECK-LABEL: dist.fragment @"receive::update::1" phase receive pipe 1 for @"update::1" {
dist.fragment @"receive::update::1" phase receive pipe 1 for @"update::1" {
}
// CHECK-LABEL: dist.fragment @nothing phase forward stage 0 {
dist.fragment @nothing phase forward stage 0 {
}
