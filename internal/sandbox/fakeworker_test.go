package sandbox

func maybeFakeWorker() {}
