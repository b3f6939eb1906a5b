// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.value @x : tensor<4x64xf32>

// Tests a way to host memory, on to a file, and back.
// CHECK-LABEL: dist.fragment @forward
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<4x64xf32>
  // CHECK: %[[H:.*]] = dist.transfer %{{.*}} from device to host : tensor<4x64xf32>
  %h = dist.transfer %x from device to host : tensor<4x64xf32>
  // CHECK: %[[N:.*]] = dist.transfer %[[H]] from host to nvme : tensor<4x64xf32>
  %n = dist.transfer %h from host to nvme : tensor<4x64xf32>
  // CHECK: %[[D:.*]] = dist.transfer %[[N]] from nvme to device : tensor<4x64xf32>
  %d = dist.transfer %n from nvme to device : tensor<4x64xf32>
  // CHECK: train.exp %[[D]]
  %y = train.exp %d : (tensor<4x64xf32>) -> tensor<4x64xf32>
}
