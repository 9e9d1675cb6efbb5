import { Body, Controller, Delete, Get, Param, Post } from '@nestjs/common'
import { ArticlesService } from './articles.service'

@Controller('articles')
export class ArticlesController {
  constructor(private readonly articles: ArticlesService) {}

  @Get()
  async findAll() { return this.articles.all() }

  @Get(':slug')
  async findOne(@Param('slug') slug: string) { return this.articles.one(slug) }

  @Post(':slug/comments')
  async comment(@Param('slug') slug: string, @Body('text') text: string) { return {} }

  @Delete(':slug')
  async remove(@Param('slug') slug: string) { return null }
}
