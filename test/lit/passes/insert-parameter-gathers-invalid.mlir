// RUN: ds-opt %s --ds-insert-parameter-gathers | FileCheck %s
// No input is wrong for this pass; one without buckets stays as it is.

// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    train.read @a
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %a = train.read @a : tensor<8xf32>
}
