// Never calls exposeWorker().
