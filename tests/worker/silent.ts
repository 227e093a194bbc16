// Never calls expose().
