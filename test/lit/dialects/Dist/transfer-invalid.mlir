// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.value @x : tensor<4xf32>
dist.fragment @transfer_c1 phase forward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // expected-error @+1 {{op leads from device to device; these must be two memory spaces}}
  %0 = dist.transfer %x from device to device : tensor<4xf32>
}

// -----

dist.value @x : tensor<4xf32>
dist.fragment @transfer_c2_host phase forward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // expected-note @+1 {{put there here}}
  %0 = dist.transfer %x from device to host : tensor<4xf32>
  // expected-error @+1 {{op takes a tensor from nvme that lies in host}}
  %1 = dist.transfer %0 from nvme to device : tensor<4xf32>
}

// -----

dist.fragment @transfer_c2_device phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{op takes a tensor from host that lies in device}}
  %0 = dist.transfer %x from host to device : tensor<4xf32>
}

// -----

dist.value @x : tensor<4xf32>
dist.fragment @transfer_c3 phase forward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // expected-error @+1 {{op leaves its result in host for 'train.exp'; only a transfer or a store reads it there}}
  %0 = dist.transfer %x from device to host : tensor<4xf32>
  // expected-note @+1 {{used here}}
  %1 = train.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// expected-note @+1 {{declared here}}
dist.value @x : tensor<4xf32>
dist.fragment @load_c2_device phase forward stage 0 {
  // expected-error @+1 {{op @x lies in device; 'dist.transfer' does not take it from there}}
  %x = dist.load @x : tensor<4xf32>
  // expected-note @+1 {{used here}}
  %0 = dist.transfer %x from host to device : tensor<4xf32>
}

// -----

// expected-note @+1 {{declared here}}
dist.value @x : tensor<4xf32> in host
dist.fragment @load_c2_host phase forward stage 0 {
  // expected-error @+1 {{op @x lies in host; 'train.exp' does not take it from there}}
  %x = dist.load @x : tensor<4xf32>
  // expected-note @+1 {{used here}}
  %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// expected-note @+1 {{declared here}}
dist.value @x : tensor<4xf32> in host
dist.fragment @store_c2 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{op @x lies in host, the tensor in device}}
  dist.store %x as @x : tensor<4xf32>
}

// -----

// expected-error @+1 {{is a graph input, which kernels read where it lies: in device memory, not host}}
dist.value @value_c4 : tensor<4xf32> input "x" in host
