// RUN: ds-opt %s --canonicalize --cse | FileCheck %s

train.variable buffer @average : tensor<3xf32> from #train.fill<0.0> {persistent}

// Tests that an update is neither merged with its like nor dropped: each is a step of the average.
// CHECK-LABEL: func.func @updates
func.func @updates(%x: tensor<3xf32>) {
  // CHECK-COUNT-2: train.update_average %{{.*}} into @average momentum 9.000000e-01 correction 1.500000e+00 : tensor<3xf32>
  train.update_average %x into @average momentum 0.9 correction 1.5 : tensor<3xf32>
  train.update_average %x into @average momentum 0.9 correction 1.5 : tensor<3xf32>
  return
}
