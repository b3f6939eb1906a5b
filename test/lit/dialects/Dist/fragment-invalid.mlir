// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op body has arguments; dist.load reads what others kept}}
dist.fragment @fragment_c1 phase forward stage 0 {
^bb0(%x: tensor<4xf32>):
}

// -----

func.func @outside(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.store' op expects parent op 'dist.fragment'}}
  dist.store %x as @x : tensor<4xf32>
  return
}
