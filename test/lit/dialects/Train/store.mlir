// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable buffer @count : tensor<i64> from #train.fill<0.0>

// CHECK-LABEL: func.func @store
func.func @store(%x: tensor<i64>) {
  // CHECK: train.store %{{.*}} into @count : tensor<i64>
  train.store %x into @count : tensor<i64>
  return
}
