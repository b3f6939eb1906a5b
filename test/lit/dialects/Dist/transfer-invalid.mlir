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

dist.value @x : tensor<4xf32>
dist.fragment @transfer_c2_device phase forward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // expected-error @+1 {{op takes a tensor from host that lies in device}}
  %0 = dist.transfer %x from host to device : tensor<4xf32>
}

// -----

dist.value @x : tensor<4xf32>
dist.fragment @transfer_c3 phase forward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // expected-error @+1 {{op leaves its result in host for 'train.exp'; only a transfer reads it there}}
  %0 = dist.transfer %x from device to host : tensor<4xf32>
  // expected-note @+1 {{used here}}
  %1 = train.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
}
