// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the result is the data's type, whatever meets its elements.
// CHECK-LABEL: func.func @scatter_elements_c3
func.func @scatter_elements_c3(%data: tensor<5x6xf32>, %i: tensor<4x9xi64>, %u: tensor<4x9xf32>) -> tensor<5x6xf32> {
  // CHECK: train.scatter_elements replace %{{.*}}, %{{.*}}, %{{.*}} along 1
  %0 = train.scatter_elements replace %data, %i, %u along 1 : (tensor<5x6xf32>, tensor<4x9xi64>, tensor<4x9xf32>) -> tensor<5x6xf32>
  // CHECK: train.scatter_elements max %{{.*}}, %{{.*}}, %{{.*}} along 1
  %1 = train.scatter_elements max %0, %i, %u along 1 : (tensor<5x6xf32>, tensor<4x9xi64>, tensor<4x9xf32>) -> tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
