// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @scatter_elements_c1(%data: tensor<5xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 1 is not a dimension of 'tensor<5xf32>'}}
  %0 = train.scatter_elements add %data, %i, %u along 1 : (tensor<5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c2(%data: tensor<5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x1xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{indices 'tensor<2x1xi64>' do not fit 'tensor<5xf32>' along axis 0}}
  %0 = train.scatter_elements add %data, %i, %u along 0 : (tensor<5xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c3(%data: tensor<5xf32>, %i: tensor<2xi64>, %u: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{updates 'tensor<3xf32>' must have the shape of indices 'tensor<2xi64>' and the element type of 'tensor<5xf32>'}}
  %0 = train.scatter_elements add %data, %i, %u along 0 : (tensor<5xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c4(%data: tensor<5xi1>, %i: tensor<2xi64>, %u: tensor<2xi1>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{reduction add does not exist on 'tensor<5xi1>'}}
  %0 = train.scatter_elements add %data, %i, %u along 0 : (tensor<5xi1>, tensor<2xi64>, tensor<2xi1>) -> tensor<5xi1>
  return
}
