import { Injectable } from '@nestjs/common'
import { OnEvent } from '@nestjs/event-emitter'

@Injectable()
export class ArticlesService {
  @OnEvent('article.published')
  notify(id: string) {}
}

@Processor('mails')
export class MailConsumer extends WorkerHost {
  async process(job: Job) {}
}

export class OwnerGuard implements CanActivate {}

export class LoggerMiddleware implements NestMiddleware {}

export class CreateArticleDto {}

@EventsHandler(ArticleDeletedEvent)
export class RemoveComments implements IEventHandler<ArticleDeletedEvent> {}

export class ArticleDeletedEvent {}

@Injectable()
export class Slugs {}
