dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 1]
// EXAMPLE
dist.fragment @evaluate phase evaluate stage 0 {
}
